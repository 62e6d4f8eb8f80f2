#pragma once
// Asks supports() what a kernel takes, before the first case: first of forward, then of backward.

#include <optional>
#include <string>
#include <vector>

#include "properties/search/capability.hpp"
#include "properties/search/probe_base.hpp"

namespace attest::search {

class Prober {
public:
    /// `narrowed` is told in sentences what will not be drawn.
    Prober(Kernel& kernel, Capability capability, std::vector<std::string>& narrowed)
        : kernel_(kernel), capability_(std::move(capability)), narrowed_(narrowed) {}

    Capability probe();

private:
    struct Accepted {
        kernel::Formats formats;
        Dims dims;
    };

    /// Of the same kernel's backward.
    Prober(const Prober& forward, std::vector<std::string>& narrowed)
        : kernel_(forward.kernel_),
          capability_(forward.capability_),
          narrowed_(narrowed),
          base_(forward.base_),
          accepted_(forward.accepted_),
          tried_dims_(forward.tried_dims_),
          want_grad_(true) {}

    bool takes(const Problem& problem);
    /// Whether this is no problem: what always comes with the kernel admits no such one.
    static bool is_none(Problem problem);
    bool any_accepted(std::optional<kernel::Formats> formats,
                      std::optional<std::int64_t> dim) const;
    /// A problem that is taken, of the middle one of the head dimensions.
    Problem plain(std::optional<kernel::Formats> formats = {}) const;
    std::string why() const { return reason_.empty() ? "" : " (" + reason_ + ")"; }

    /// Finds the first base that is taken with some of these head dimensions.
    bool find_accepted(std::vector<Dims> dims);
    void narrow_always();
    void narrow_numbers();
    /// Nothing is drawn so; a law asks for it.
    void tell_empty_axes();
    void narrow_dims();
    /// Not any head dimension of the values, but those of real models.
    void ask_unequal_dims();
    void narrow_formats();
    /// Not drawn: what is refused with every accepted format and the middle one of its dimensions.
    void narrow_features();
    bool takes_feature(Feature feature);
    /// Not pages of 16, but others; not a group of two, but a larger one.
    bool takes_otherwise(Problem problem, Feature feature);
    /// Many kernels know windows to the left alone, and the manifest has no word for that.
    void narrow_window();
    void find_outliers();

    /// Asked as all else was, from a form of its own; kept where it is less.
    void narrow_gradients();
    void probe_backward();
    /// Whether the gradients of that many are taken in some format and head dimension of forward's.
    bool differentiates_at(std::int64_t queries, std::int64_t tokens, const Prober& forward);
    /// A backward may take shorter sequences than forward alone, or longer ones, and fewer head
    /// dimensions and formats.
    bool find_differentiated();

    Kernel& kernel_;
    Capability capability_;
    std::vector<std::string>& narrowed_;
    Base base_{};
    std::vector<Accepted> accepted_;
    std::vector<Dims> tried_dims_;
    std::string reason_;  ///< of the last refusal
    bool want_grad_ = false;
};

}  // namespace attest::search
