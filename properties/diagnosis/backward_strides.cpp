#include "properties/diagnosis/backward_strides.hpp"

#include <algorithm>

#include "kernels/worker/placement.hpp"
#include "reference/problem/feature.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::size_t layout_count = std::size(layout_fields);

/// Of the call's tensors, those that one layout is of.
std::vector<Role> laid_out_by(std::size_t field, const search::Kernel& kernel,
                              const BackwardEvidence& e) {
    constexpr Role roles[] = {Role::q,   Role::k,   Role::v,     Role::mask, Role::o,  Role::lse,
                              Role::d_o, Role::d_q, Role::d_lse, Role::d_k,  Role::d_v};
    Problem marked;
    marked.*layout_fields[field] = {AxisOrder::tbhd, 1, 0};
    std::vector<Role> found;
    for (const Role role : roles) {
        const bool of_lse = role == Role::lse || role == Role::d_lse;
        if (of_lse && kernel.manifest().takes.lse_order == kernel::LseOrder::bht) continue;
        if (worker::layout_of(marked, role) != Layout{} &&
            (e.asked.inputs.has(role) || e.observed.has(role)))
            found.push_back(role);
    }
    return found;
}

/// Whether the call is right where those of `taken` are laid out as it was wrong, the others
/// contiguous: bit n of `taken` is the layout of field n.
using Rights = std::array<bool, 1 << layout_count>;

Rights laid_out_each_way(search::Kernel& kernel, const BackwardEvidence& e, const Layout& layout) {
    Rights right{};
    for (std::size_t taken = 0; taken < right.size(); ++taken) {
        Layouts layouts{};
        for (std::size_t n = 0; n < layout_count; ++n)
            if ((taken >> n & 1) != 0) layouts[n] = layout;
        right[taken] = right_laid_out(kernel, e, layouts);
    }
    return right;
}

std::string tensors_told(search::Kernel& kernel, const BackwardEvidence& e, const Rights& right) {
    const auto told_by = [&right](auto expected) {
        for (std::size_t taken = 0; taken < right.size(); ++taken)
            if (right[taken] != expected(taken)) return false;
        return true;
    };
    const auto has = [](std::size_t taken, std::size_t n) { return (taken >> n & 1) != 0; };
    const auto text = [&](std::size_t n) { return text_of(laid_out_by(n, kernel, e)); };
    for (std::size_t a = 0; a < layout_count; ++a) {
        if (told_by([&](std::size_t taken) { return !has(taken, a); }))
            return "right gradients only where " + text(a) +
                   " are contiguous: the strides of one of them are ignored";
        for (std::size_t b = a + 1; b < layout_count; ++b)
            if (told_by([&](std::size_t taken) { return has(taken, a) == has(taken, b); }))
                return "right gradients only where " + text(a) + " are laid out as " + text(b) +
                       ": one of the first has the strides of one of the others, or the other way";
    }
    return {};
}

}  // namespace

std::optional<Explanation> gradient_strides_ignored(search::Kernel& kernel,
                                                    const std::vector<BackwardEvidence>& wrong) {
    Explanation d;
    d.id = "strides_ignored";
    d.says = "right gradients of contiguous tensors alone: strides are ignored, or are another's";
    d.in_forward = "strides_ignored";
    for (const BackwardEvidence& e : wrong) {
        if (!features_of(e.asked.problem).has(Feature::layout) || !right_laid_out(kernel, e, {}))
            return std::nullopt;
        for (const Role role : gradient_roles)
            if (e.observed.has(role)) d.of += e.observed[role].size();
    }
    d.agree = d.of;
    for (const BackwardEvidence& e : wrong)
        for (const auto field : layout_fields) {
            const Layout layout = e.asked.problem.*field;
            if (layout == Layout{}) continue;
            const std::string told = tensors_told(kernel, e, laid_out_each_way(kernel, e, layout));
            if (told.empty()) continue;
            d.says = told;
            return d;
        }
    return d;
}

}  // namespace attest::diagnosis
