// The tables of a bench on the screen.

#include <fmt/format.h>

#include "ci/bench.hpp"

namespace attest::ci {

std::string bench_text(const BenchReport& report) {
    return fmt::format("oracle on {}, seed {}\n", report.instructions, report.seed);
}

std::string bench_text(const CertifiedErrors& errors) {
    std::string text = fmt::format(
        "\ncertified error against 50 digits\n  {:<22}{:>12}{:>10}{:>10}{:>8}{:>8}{:>8}\n",
        "arithmetic", "elements", "violated", "infinite", "median<", "p99.9<", "max");
    for (std::size_t a = 0; a < errors.size(); ++a) {
        const UsedError& u = errors[a];
        text += fmt::format("  {:<22}{:>12}{:>10}{:>10}{:>8.2g}{:>8.2g}{:>8.2g}\n",
                            certified_arithmetics[a], u.elements, u.violated, u.infinite, u.median,
                            u.p999, u.max);
    }
    return text;
}

namespace {

std::string count_line(std::string_view what, Precision format, const BoundCount& count) {
    return fmt::format("  {:<32}{:<8}{:>10}{:>10}{:>11}\n", what, name(format), count.elements,
                       count.violated, count.undecided);
}

}  // namespace

std::string bench_text(const ForwardReport& forward) {
    std::string text =
        "\ncorrect forward kernels: naive, flash, split and merged; every kind of values\n"
        "  bound                           format    elements  violated  undecided\n";
    for (std::size_t at = 0; at < bench_formats.size(); ++at)
        for (std::size_t b = 0; b < forward_bounds.size(); ++b)
            if (const BoundCount& count = forward.bounds[at][b]; count.elements > 0)
                text += count_line(forward_bounds[b], bench_formats[at], count);
    text += fmt::format(
        "\nescalation: undecided in double alone, rows computed again in double-double\n"
        "  {:<32}{:<8}{:>10}{:>10}{:>10}{:>8}\n",
        "positions", "format", "elements", "undecided", "rows", "again");
    for (std::size_t kind = 0; kind < escalation_kinds.size(); ++kind)
        for (std::size_t at = 0; at < narrow_formats.size(); ++at) {
            const Escalation& x = forward.alone[kind][at];
            text += fmt::format("  {:<32}{:<8}{:>10}{:>10}{:>10}{:>8}\n", escalation_kinds[kind],
                                name(narrow_formats[at]), x.elements, x.undecided, x.rows, x.again);
        }
    return text;
}

std::string bench_text(const BackwardCounts& counts) {
    std::string text =
        "\ncorrect backward kernels            format    elements  violated  undecided\n";
    for (std::size_t at = 0; at < narrow_formats.size(); ++at)
        text += count_line("dQ, dK, dV", narrow_formats[at], counts[at]);
    return text;
}

std::string bench_text(const SpeedTable& table) {
    return fmt::format(
        "\nspeed, d {}, GMAC/s; x: time over plain attention's (Eigen, double, no bound)\n"
        "  {:<8}{:>9}{:>10}{:>8}{:>10}{:>8}{:>11}{:>13}\n",
        table.dim, "length", "plain", "filtered", "x", "dbl-dbl", "x", "50 digits", "/ filtered");
}

std::string bench_text(const SpeedRow& row, std::int64_t dim) {
    const auto rate = [&](double seconds) { return giga_macs(row.len, row.len, dim, seconds); };
    return fmt::format("  {:<8}{:>9.2f}{:>10.2f}{:>8.2f}{:>10.2f}{:>8.2f}{:>11.5f}{:>13.0f}\n",
                       row.len, rate(row.plain), rate(row.filtered), row.filtered / row.plain,
                       rate(row.double_double), row.double_double / row.plain, rate(row.exact),
                       row.exact / row.filtered);
}

std::string bench_text(const LongSpeed& s) {
    return fmt::format(
        "\nlength {}, d {}, seconds\n  {} sampled rows {:>24.3f}\n  every row, {} classes of keys"
        "{:>11.3f}\n  the same, causal {:>24.3f}\n",
        s.len, s.dim, s.rows, s.sampled, s.classes, s.collapsed, s.causal);
}

std::string bench_text(const DeviceSpeed& s) {
    if (s.name.empty()) return fmt::format("\nevery row on a GPU: not run: {}\n", s.not_run);
    const double gpu = giga_macs(s.len, s.len, s.dim, s.seconds);
    const double cpu = giga_macs(s.cpu_rows, s.len, s.dim, s.cpu_seconds);
    return fmt::format(
        "\nevery row on {}, length {}\n"
        "  {:.3f} s, {:.2f} GMAC/s, {:.0f} times one core of this CPU\n",
        s.name, s.len, s.seconds, gpu, gpu / cpu);
}

}  // namespace attest::ci
