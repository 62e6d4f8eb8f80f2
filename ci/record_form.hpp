#pragma once
// How reports are listed. Each has one list, fields(v, report), where `v` is a RecordWriter, which
// puts every field under its key, or a RecordReader, which takes it from there: a key stands once,
// and what is read is what is written.
//
//     v(key, field)                it is always there
//     v.added(key, field)          the same, but the files of earlier versions lack it
//     v.unless_empty(key, field)   only where it says something
//     v.told(key, value)           follows from the rest; for other readers
//     v.group(key, list)           an object of its own
//     v.require(key, true, what)   or the file is refused at that key

#include <cstdint>
#include <string>

#include "ci/run_report.hpp"

namespace attest::ci {

// Forms other than that of the field's type: a word, a text, a count, or a real, which is a number,
// "inf", "-inf" or "nan".

/// A finite number: the largest there is for what is not.
struct AsNumber {
    double& value;
};
/// A text: the real as C99 hex float.
struct AsHex {
    double& value;
};
struct AsHexRows {
    std::vector<std::vector<double>>& value;
};
/// A text: the number's digits.
struct AsDigits {
    std::uint64_t& value;
};
/// A text: 16 hexadecimal digits.
struct AsHash {
    std::uint64_t& value;
    bool empty() const { return value == 0; }
};
/// A whole number of either sign.
struct AsSigned {
    std::int64_t& value;
};
/// A text of 6 to 64 hexadecimal digits.
struct AsId {
    std::string& value;
};
/// A text, or null where it is empty.
struct OrNull {
    std::string& value;
};

/// 16 lower-case digits.
inline std::string hash_text(std::uint64_t hash) {
    std::string text(16, '0');
    for (std::size_t n = text.size(); n-- > 0; hash >>= 4) text[n] = "0123456789abcdef"[hash & 15];
    return text;
}

template <typename V>
void fields(V& v, Machine& m) {
    v("cpu", m.cpu);
    v("isa", m.isa);
    v("cores", m.cores);
    v("memory_bytes", m.memory_bytes);
    v("os", m.os);
    v("compiler", m.compiler);
    v.added("gpu", OrNull{m.gpu});
}

template <typename V>
void fields(V& v, worker::Fault& fault) {
    v.added("kind", fault.kind);
    v.added("stray", fault.stray);
    std::string tensor = fault.tensor      ? std::string(name(*fault.tensor))
                         : fault.workspace ? "workspace"
                                           : "none";
    std::string side = fault.before ? "before" : "after";
    v("tensor", tensor);
    v("offset_bytes", AsSigned{fault.offset_bytes});
    v("side", side);
    v("signal", fault.signal);
    v("says", fault.sentence);
    if constexpr (V::reading) {
        fault.workspace = tensor == "workspace";
        if (!fault.workspace && tensor != "none") v("tensor", fault.tensor.emplace());
        fault.before = side == "before";
        v.require("side", fault.before || side == "after", "before or after");
    }
}

template <typename V>
void fields(V& v, search::Sizes& sizes) {
    if constexpr (V::reading) sizes = {};  // what says nothing is not written
    for (int n = 0; n < search::size_axis_count; ++n) {
        const auto axis = static_cast<search::SizeAxis>(n);
        v.unless_empty(name(axis), sizes[axis]);
    }
}

template <typename V>
void fields(V& v, search::Profile& p) {
    v("name", p.name);
    v("version", p.version);
    v.added("cases_per_law", p.cases_per_law);
    v.added("scores_max", p.scores_max);
    v.added("len_max", p.len_max);
    v.added("dim_max", p.dim_max);
    v.added("reach", p.reach);
    v.added("len_min", p.len_min);
    v.added("laws", p.laws);
    v.added("laws_excluded", p.laws_excluded);
    v.added("backward", p.backward);
    v.added("fails", p.fails);
    v("discard_max", AsNumber{p.discard_max});
    v("refuse_max", AsNumber{p.refuse_max});
    v("undrawn_pairs_max", p.undrawn_pairs_max);
}

template <typename V>
void fields(V& v, law::ScoreSample& s) {
    v("squares", AsNumber{s.squares});
    v("noise_squares", AsNumber{s.noise_squares});
    v("rounding", s.rounding);
    v("count", s.count);
}

template <typename V>
void fields(V& v, search::Doubted& doubted) {
    v("cases", doubted.cases);
    v("line", doubted.first);
}

/// Listed in record_counterexample.cpp.
class RecordReader;
class RecordWriter;
void fields(RecordReader& v, diagnosis::CounterexampleReport& report);
void fields(RecordWriter& v, diagnosis::CounterexampleReport& report);

}  // namespace attest::ci
