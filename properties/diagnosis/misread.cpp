#include "properties/diagnosis/misread.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "properties/diagnosis/evidence.hpp"
#include "properties/law/gradient_run.hpp"
#include "properties/law/visibility.hpp"
#include "properties/search/kernel_trial.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"
#include "reference/problem/validity.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::int64_t calls_max = 160;

/// A value of the case.
struct Slot {
    std::int64_t batch = 0, head = 0, key = 0;
};

std::vector<Slot> all_slots(const Problem& p) {
    std::vector<Slot> slots;
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_kv; ++h)
            for (std::int64_t j = 0; j < p.len_kv; ++j) slots.push_back({b, h, j});
    return slots;
}

enum class Read : std::uint8_t { no, yes, unknown };

Read read_of(double number) {
    return std::isnan(number) ? Read::unknown : number != 0 ? Read::yes : Read::no;
}

/// Which value each query reads: [query of all_rows][slot of all_slots].
using Reading = std::vector<std::vector<Read>>;

class ReadingOfKernel {
public:
    ReadingOfKernel(search::Kernel& kernel, const Case& tried)
        : trial_(kernel, tried),
          problem_(tried.problem),
          rows_(law::all_rows(problem_)),
          slots_(all_slots(problem_)) {}

    std::optional<Reading> read(Pass pass) const {
        const std::size_t units = pass == Pass::forward ? slots_.size() : rows_.size();
        const auto width = static_cast<std::size_t>(value_dim(problem_));
        if (static_cast<std::int64_t>((units + width - 1) / width) > calls_max) return std::nullopt;
        Reading reading(rows_.size(), std::vector<Read>(slots_.size(), Read::no));
        for (std::size_t first = 0; first < units; first += width)
            read_some(pass, first, std::min(width, units - first), reading);
        return reading;
    }
    const std::vector<law::Row>& rows() const { return rows_; }
    const std::vector<Slot>& slots() const { return slots_; }
    const TensorSet& inputs() const { return trial_.inputs(); }

private:
    /// A unit each, in a channel of its own: of V, in every output; of dO, in every dV.
    void read_some(Pass pass, std::size_t first, std::size_t count, Reading& reading) const {
        TensorSet inputs = trial_.inputs();
        if (pass == Pass::backward) inputs = backward_inputs(inputs);
        const Role role = pass == Pass::forward ? Role::v : Role::d_o;
        Tensor units(inputs[role].type(), inputs[role].shape());
        for (std::size_t n = 0; n < count; ++n) {
            const auto c = static_cast<std::int64_t>(n);
            if (pass == Pass::forward) {
                const Slot& s = slots_[first + n];
                units.put(s.batch, s.head, s.key, c, 1.0);
            } else {
                const law::Row& r = rows_[first + n];
                units.put(r.batch, r.head, r.query, c, 1.0);
            }
        }
        inputs.put(role, std::move(units));
        const TensorSet answer = pass == Pass::forward
                                     ? trial_.run(problem_, inputs)
                                     : trial_.backward(problem_, inputs, {Role::d_v});
        const Tensor& t = answer[pass == Pass::forward ? Role::o : Role::d_v];
        for (std::size_t n = 0; n < count; ++n) {
            const auto c = static_cast<std::int64_t>(n);
            if (pass == Pass::forward)
                for (std::size_t r = 0; r < rows_.size(); ++r)
                    reading[r][first + n] =
                        read_of(t.at(rows_[r].batch, rows_[r].head, rows_[r].query, c));
            else
                for (std::size_t s = 0; s < slots_.size(); ++s)
                    reading[first + n][s] =
                        read_of(t.at(slots_[s].batch, slots_[s].head, slots_[s].key, c));
        }
    }

    TensorSet backward_inputs(const TensorSet& inputs) const {
        TensorSet with = inputs;
        if (!with.has(Role::d_o))
            with.put(Role::d_o,
                     Tensor(type_of(problem_, Role::d_o), shape_of(problem_, Role::d_o).value()));
        return law::backward_inputs(problem_, with, trial_.run(problem_, inputs));
    }

    search::KernelTrial trial_;
    Problem problem_;
    std::vector<law::Row> rows_;
    std::vector<Slot> slots_;
};

/// What one query reads wrongly.
struct Misreading {
    std::vector<Slot> read, missed;
    std::size_t seen = 0;
    bool any() const { return !read.empty() || !missed.empty(); }
};

class ReadingJudge {
public:
    ReadingJudge(const ReadingOfKernel& reader, const Problem& problem, const Dialect& dialect)
        : reader_(reader),
          problem_(problem),
          dialect_(dialect),
          visible_(problem, dialect, reader.inputs()),
          details_(problem, dialect, reader.inputs()) {}

    /// Of a weight smaller than this none is missed: a format may not hold it.
    static constexpr double missed_min = 0x1p-10;

    Misreading judge(const law::Row& row, const std::vector<Read>& reads) {
        Misreading found;
        if (!visible_.is_query(row)) return found;
        const bool may_read_all = visible_.empty(row) && dialect_.empty_row != EmptyRow::zeros;
        if (may_read_all || std::ranges::count(reads, Read::unknown) > 0) return found;
        const std::vector<double> weights = details_.row(row.batch, row.head, row.query).weights;
        for (std::size_t n = 0; n < reads.size(); ++n) {
            const Slot& s = reader_.slots()[n];
            const bool sees = is_own(row, s) && visible_.sees(row, s.key);
            found.seen += sees;
            if (!sees && reads[n] == Read::yes) found.read.push_back(s);
            if (sees && reads[n] == Read::no &&
                weights[static_cast<std::size_t>(s.key)] >= missed_min)
                found.missed.push_back(s);
        }
        return found;
    }

    /// of_values: the row's log-sum-exp is right, so that the keys that it sees are scored.
    std::string sentence(const law::Row& row, const Misreading& found, bool of_values) const {
        std::string text = law::name_of(problem_, row);
        const std::string what = of_values ? "the value of " : "";
        if (!found.read.empty()) {
            const Slot& s = found.read.front();
            text += " reads " + what + name_of(row, s);
            if (is_own(row, s)) text += ", " + std::string(visible_.reason(row, s.key));
            text += more(found.read.size());
        }
        if (found.missed.empty()) return text;
        text += found.read.empty() ? " does not read " : ", and not ";
        if (found.missed.size() == found.seen && found.seen > 1)
            return text + "any of the " + std::to_string(found.seen) +
                   (of_values ? " values it is to read" : " keys it sees");
        return text + what + name_of(row, found.missed.front()) + ", which it sees" +
               more(found.missed.size());
    }

private:
    bool is_own(const law::Row& row, const Slot& s) const {
        return s.batch == row.batch && s.head == row.head / group_size(problem_);
    }
    std::string name_of(const law::Row& row, const Slot& s) const {
        std::string text = "key " + std::to_string(s.key);
        if (problem_.heads_kv > 1) text += " of key head " + std::to_string(s.head);
        if (s.batch != row.batch) text += " of sequence " + std::to_string(s.batch);
        return text;
    }
    static std::string more(std::size_t count) {
        return count > 1 ? " (and " + std::to_string(count - 1) + " more)" : "";
    }

    const ReadingOfKernel& reader_;
    const Problem& problem_;
    const Dialect& dialect_;
    law::Visibility visible_;
    oracle::RowDetails details_;
};

/// Of which rows the log-sum-exp is right, in the order of all_rows; of none where there is none.
std::vector<bool> scored_rightly(search::Kernel& kernel, const Case& c) {
    const kernel::Manifest& manifest = kernel.manifest();
    if (!c.problem.want_lse) return {};
    const search::KernelTrial trial(kernel, c);
    const TensorSet& observed = trial.observed();
    if (!observed.has(Role::lse)) return {};
    const bound::Expected truth =
        oracle::attend(c.problem, manifest.dialect, manifest.numerics, trial.inputs());
    std::vector<bool> right;
    for (std::size_t n = 0; n < truth.lse.size(); ++n)
        right.push_back(bound::judge(observed[Role::lse].get(static_cast<std::int64_t>(n)),
                                     truth.lse[n],
                                     lse_format(c.problem)) != bound::Agreement::disagrees);
    return right;
}

std::string misread_in(search::Kernel& kernel, const Case& c, Pass pass,
                       const std::vector<bool>& scored) {
    const ReadingOfKernel reader(kernel, c);
    const std::optional<Reading> reading = reader.read(pass);
    if (!reading) return {};
    ReadingJudge judge(reader, c.problem, kernel.manifest().dialect);
    std::string first;
    std::size_t wrong = 0;
    const bool right = scored.size() == reader.rows().size();
    for (std::size_t r = 0; r < reader.rows().size(); ++r) {
        const Misreading found = judge.judge(reader.rows()[r], (*reading)[r]);
        if (!found.any()) continue;
        if (wrong++ == 0) first = judge.sentence(reader.rows()[r], found, right && scored[r]);
    }
    if (wrong > 1)
        first += "; " + std::to_string(wrong) + " of " + std::to_string(reader.rows().size()) +
                 " queries read other keys than they see";
    return first.empty() || pass == Pass::forward ? first : "in backward " + first;
}

}  // namespace

std::string misread(search::Kernel& kernel, const Case& smallest, Pass pass) try {
    const std::vector<Role>& gradients = kernel.manifest().gradients;
    if (pass == Pass::backward && std::ranges::find(gradients, Role::d_v) == gradients.end())
        return {};
    Case own = smallest;
    own.problem.dropout = {};
    own.problem.want_grad = pass == Pass::backward;
    own.problem = canonical(own.problem);
    require_valid(own.problem);
    if (!kernel.supports(own.problem, nullptr)) return {};
    Case flat = own;
    flat.values.tensors[Role::q] = {Fill::zeros, {}};
    // Equal scores do not tell which keys they are of: those of the case itself do.
    std::vector<bool> scored;
    if (pass == Pass::forward) {
        scored = scored_rightly(kernel, own);
        const std::vector<bool> alike = scored_rightly(kernel, flat);
        for (std::size_t n = 0; n < scored.size(); ++n)
            scored[n] = n < alike.size() && scored[n] && alike[n];
    }
    const std::string found = misread_in(kernel, flat, pass, scored);
    return found.empty() ? misread_in(kernel, own, pass, scored) : found;
} catch (const search::NoAnswer&) {
    return {};
} catch (const BadInput&) {
    return {};
}

}  // namespace attest::diagnosis
