#include "reference/oracle/nonfinite.hpp"

#include <cmath>
#include <limits>

#include "reference/oracle/visibility.hpp"

namespace attest::oracle {

namespace {

/// The score's kind: a finite number stands for any finite score. `bent`: an infinity went through
/// a cap or a rotation, and what comes out differs among kernels.
double score_kind(const Prepared& call, std::int64_t b, std::int64_t h, std::int64_t i,
                  std::int64_t j, bool& bent) {
    const double* q = call.query(b, h, i);
    const double* k = call.key(b, h / call.group, j);
    double dot = 0;
    bool holds_nan = false;
    for (std::int64_t c = 0; c < call.problem.dim_qk; ++c) {
        holds_nan = holds_nan || std::isnan(q[c]) || std::isnan(k[c]);
        const double product = q[c] * k[c];
        // A finite product that overflows double is still finite.
        dot += std::isfinite(q[c]) && std::isfinite(k[c]) ? 0 : product;
    }
    // A pair of RoPE mixes its two channels: an infinity there has no sign of its own.
    if (!std::isfinite(dot) && call.problem.rope.style != RopeStyle::none) {
        bent = bent || !holds_nan;
        return holds_nan ? std::numeric_limits<double>::quiet_NaN() : 0;
    }
    double x = std::isfinite(dot) ? 0 : dot * call.scale;
    double bias = 0;
    if (call.problem.mask.tensor.kind == MaskKind::additive) {
        const double m = call.mask_at(b, h, i, j);
        bias += std::isfinite(m) ? 0 : m;
    }
    if (call.problem.alibi) {
        const double slope = call.slopes[static_cast<std::size_t>(h)];
        if (!std::isfinite(slope)) {
            const KeyRange range = keys_of(call.problem, call.dialect, b, i);
            bias -= slope *
                    static_cast<double>(std::abs(range.position - key_position(call.problem, j)));
        }
    }
    const double cap = call.problem.softcap;
    const bool late = call.dialect.softcap == SoftcapPlace::after_bias;
    if (late) x += bias;
    bent = bent || (cap > 0 && std::isinf(x));
    if (cap > 0) x = cap * std::tanh(x / cap);
    return late ? x : x + bias;
}

}  // namespace

RowClaims screen(const Prepared& call, std::int64_t b, std::int64_t h, std::int64_t i,
                 std::vector<std::int64_t>& keys) {
    RowClaims claims;
    bool seen = false;  // anything non-finite
    bool bent = false;
    std::vector<std::int64_t> kept;
    claims.column.assign(static_cast<std::size_t>(call.dim_v), Claim::value);
    const auto worsen = [](Claim& claim, Claim to) {
        if (claim != Claim::nan) claim = to;
    };
    if (call.problem.sink && !keys.empty()) {
        const double sink = call.sinks[static_cast<std::size_t>(h)];
        claims.drop_sink = sink == -infinite;
        if (std::isnan(sink)) worsen(claims.row, Claim::nan);
        if (sink == infinite) worsen(claims.row, Claim::nonfinite);
        seen = !std::isfinite(sink);
    }
    for (const std::int64_t j : keys) {
        const double kind = score_kind(call, b, h, i, j, bent);
        seen = seen || !std::isfinite(kind);
        if (std::isnan(kind)) worsen(claims.row, Claim::nan);
        if (kind == infinite) worsen(claims.row, Claim::nonfinite);
        if (kind != -infinite) kept.push_back(j);
        const double* v = call.value(b, h / call.group, j);
        for (std::size_t c = 0; c < claims.column.size(); ++c) {
            if (std::isfinite(v[c])) continue;
            seen = true;
            // A weight of exactly 0 times infinity: kernels differ, and may.
            const Claim claim = kind == -infinite  ? Claim::nothing
                                : std::isnan(v[c]) ? Claim::nan
                                                   : Claim::nonfinite;
            worsen(claims.column[c], claim);
        }
    }
    seen = seen || bent;
    if (bent || (kept.empty() && !keys.empty())) worsen(claims.row, Claim::nothing);
    if (seen && call.dialect.nonfinite == Nonfinite::unspecified) claims.row = Claim::nothing;
    keys = std::move(kept);
    claims.seen = seen;
    return claims;
}

bound::ExpectedElement claimed(Claim claim) {
    switch (claim) {
        case Claim::nan:
            return {.value = NAN, .error = 0, .bound = 0};
        case Claim::nonfinite:
            return {.value = NAN, .error = 0, .bound = infinite};
        default:
            return {.value = 0, .error = 0, .bound = infinite};
    }
}

void clean_values(Prepared& call) {
    for (std::vector<double>* tensor : {&call.q, &call.k, &call.v})
        for (double& x : *tensor)
            if (!std::isfinite(x)) x = 0;
}

}  // namespace attest::oracle
