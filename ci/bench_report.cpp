// What follows from a bench, and its records.

#include <cmath>
#include <fstream>

#include "ci/bench.hpp"
#include "ci/record_reader.hpp"
#include "ci/record_writer.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

double giga_macs(std::int64_t rows, std::int64_t len, std::int64_t dim, double seconds) {
    constexpr double giga = 1'000'000'000;
    return 2 * static_cast<double>(rows) * static_cast<double>(len) * static_cast<double>(dim) /
           giga / seconds;
}

std::int64_t BenchReport::violated() const {
    std::int64_t sum = 0;
    for (const UsedError& used : certified) sum += used.violated;
    for (const auto& format : forward.bounds)
        for (std::size_t b = 0; b < proven_bounds; ++b) sum += format[b].violated;
    for (const BoundCount& count : backward) sum += count.violated;
    return sum;
}

namespace {

/// A list under the names of its items.
template <typename V, typename Names, typename List>
void named(V& v, const Names& names, List& list) {
    for (std::size_t n = 0; n < list.size(); ++n) {
        if constexpr (std::is_same_v<typename Names::value_type, Precision>)
            v(name(names[n]), list[n]);
        else
            v(names[n], list[n]);
    }
}

template <typename V>
void seconds_field(V& v, std::string_view key, double& seconds) {
    v(key, seconds);
    v.require(key, seconds > 0 && std::isfinite(seconds), "seconds, more than none");
}

template <typename V>
void size_field(V& v, std::string_view key, std::int64_t& size) {
    v(key, size);
    v.require(key, size > 0, "a size");
}

}  // namespace

template <typename V>
void fields(V& v, UsedError& used) {
    v("elements", used.elements);
    v("violated", used.violated);
    v("infinite", used.infinite);
    v("median", used.median);
    v("p999", used.p999);
    v("max", used.max);
    v.require("violated", used.violated <= used.elements - used.infinite, "no more than elements");
    for (const auto& [key, part] :
         {std::pair{"median", used.median}, {"p999", used.p999}, {"max", used.max}})
        v.require(key, part >= 0, "a part of the allowance");
}

template <typename V>
void fields(V& v, BoundCount& count) {
    v("elements", count.elements);
    v("violated", count.violated);
    v("undecided", count.undecided);
    v.require("violated", count.violated <= count.elements - count.undecided,
              "no more than elements");
}

template <typename V>
void fields(V& v, Escalation& e) {
    v("elements", e.elements);
    v("undecided", e.undecided);
    v.require("undecided", e.undecided <= e.elements, "no more than elements");
    v("rows", e.rows);
    v("again", e.again);
    v.require("again", e.again <= e.rows, "no more than rows");
}

template <typename V>
void fields(V& v, SpeedRow& row) {
    size_field(v, "len", row.len);
    seconds_field(v, "plain", row.plain);
    seconds_field(v, "filtered", row.filtered);
    seconds_field(v, "double_double", row.double_double);
    seconds_field(v, "exact", row.exact);
}

template <typename V>
void fields(V& v, CertifiedErrors& errors) {
    named(v, certified_arithmetics, errors);
}

template <typename V>
void fields(V& v, ForwardCounts& counts) {
    for (std::size_t at = 0; at < counts.size(); ++at)
        v.group(name(bench_formats[at]),
                [&](V& bounds) { named(bounds, forward_bounds, counts[at]); });
}

template <typename V>
void fields(V& v, Escalations& alone) {
    for (std::size_t kind = 0; kind < alone.size(); ++kind)
        v.group(escalation_kinds[kind],
                [&](V& formats) { named(formats, narrow_formats, alone[kind]); });
}

template <typename V>
void fields(V& v, BackwardCounts& counts) {
    named(v, narrow_formats, counts);
}

template <typename V>
void fields(V& v, SpeedTable& table) {
    size_field(v, "dim", table.dim);
    v("rows", table.rows);
    v.require("rows", !table.rows.empty(), "a row at least");
}

template <typename V>
void fields(V& v, LongSpeed& speed) {
    size_field(v, "len", speed.len);
    size_field(v, "dim", speed.dim);
    size_field(v, "rows", speed.rows);
    size_field(v, "classes", speed.classes);
    seconds_field(v, "sampled", speed.sampled);
    seconds_field(v, "collapsed", speed.collapsed);
    seconds_field(v, "causal", speed.causal);
}

template <typename V>
void fields(V& v, DeviceSpeed& speed) {
    v("name", OrNull{speed.name});
    v("not_run", OrNull{speed.not_run});
    v.require("not_run", speed.name.empty() != speed.not_run.empty(), "a device, or why not");
    if (speed.name.empty()) return;
    size_field(v, "len", speed.len);
    size_field(v, "dim", speed.dim);
    size_field(v, "cpu_rows", speed.cpu_rows);
    seconds_field(v, "seconds", speed.seconds);
    seconds_field(v, "cpu_seconds", speed.cpu_seconds);
}

template <typename V>
void fields(V& v, BenchReport& report) {
    v("attest", report.attest);
    v("started", report.started);
    v("instructions", report.instructions);
    v("seed", AsDigits{report.seed});
    seconds_field(v, "seconds", report.seconds);
    v("machine", report.machine);
}

namespace {

/// Each is one line, in this order.
template <typename Take>
void each_record(BenchReport& report, Take take) {
    take("bench", report);
    take("certified", report.certified);
    take("forward", report.forward.bounds);
    take("escalation", report.forward.alone);
    take("backward", report.backward);
    take("speed", report.speed);
    take("long", report.long_context);
    take("device", report.device);
}

}  // namespace

std::string bench_records(BenchReport report) {
    std::string text;
    each_record(report, [&](const char* kind, auto& part) {
        text += RecordWriter::line_of(kind, part) + "\n";
    });
    return text;
}

BenchReport read_bench(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw BadInput(path + ": cannot be read");
    BenchReport report;
    std::string line;
    std::int64_t number = 0;
    each_record(report, [&](const std::string& kind, auto& part) {
        if (!std::getline(file, line)) throw BadInput(path + ": has no " + kind + " record");
        const JsonSource source{line, path, ++number};
        const Json value = parse_json(source);
        RecordReader v(source, value);
        v.require("record", v.kind() == kind, kind + ", the record of this line");
        fields(v, part);
        v.finish();
    });
    if (std::getline(file, line))
        throw BadInput(path + ":" + std::to_string(number + 1) + ":1: expected nothing more");
    return report;
}

}  // namespace attest::ci
