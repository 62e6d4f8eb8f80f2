// Hygiene: where an element lies is a number of 64 bits. Rows of one tensor are laid so far apart
// that offsets pass 2^31 or 2^32 elements; between them the memory file has holes, so that such a
// tensor takes a page a row (kernels/worker/arena.hpp).

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

/// Rows beside each other in memory, of the tensors that are laid apart.
constexpr std::int64_t rows_max = 512;

struct LaidOut {
    Role role;
    Layout Problem::*layout;
    const char* name;
};
constexpr std::array laid_out = {LaidOut{Role::q, &Problem::layout_q, "queries"},
                                 LaidOut{Role::k, &Problem::layout_k, "keys"},
                                 LaidOut{Role::v, &Problem::layout_v, "values"},
                                 LaidOut{Role::o, &Problem::layout_o, "outputs"}};

/// How many elements one row of memory holds, and how many rows there are.
struct MemoryRows {
    std::int64_t row = 0, rows = 0;
};
MemoryRows memory_rows(const Problem& problem, Role role, AxisOrder order) {
    const Shape shape = cache_shape_of(problem, role).value_or(shape_of(problem, role).value());
    const std::size_t innermost = order == AxisOrder::bhdt ? 2 : 3;
    MemoryRows m{shape[innermost], 1};
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        if (axis != innermost) m.rows *= shape[axis];
    return m;
}

bool few_rows(const Problem& p) {
    for (const LaidOut& tensor : laid_out)
        for (const AxisOrder order : {AxisOrder::bhtd, AxisOrder::bhdt})
            if (memory_rows(p, tensor.role, order).rows > rows_max) return false;
    return has_rows(p);
}

struct FarProblem {
    Problem problem;
    const char* far = nullptr;   ///< what lies apart
    const char* past = nullptr;  ///< which offset
};

/// One tensor's rows so far apart that row `at` lies at the limit or just past it, and the later
/// ones past it.
FarProblem far_apart(const Given& given, std::size_t index) {
    constexpr std::array limits = {std::pair{std::int64_t{1} << 31, "2^31"},
                                   std::pair{std::int64_t{1} << 32, "2^32"}};
    constexpr std::array orders = {AxisOrder::bhtd, AxisOrder::bthd, AxisOrder::tbhd,
                                   AxisOrder::bhdt};
    const std::uint64_t stream = stream_of("hygiene.large_index");
    const LaidOut& tensor = laid_out[index];
    FarProblem far{given.problem(), tensor.name};
    const auto drawn = [&](std::uint64_t what, std::int64_t below) {
        return given.random_below(stream + what, index, below);
    };
    const auto& [limit, past] = limits[static_cast<std::size_t>(drawn(0, limits.size()))];
    const AxisOrder order = orders[static_cast<std::size_t>(drawn(1, orders.size()))];
    const MemoryRows memory = memory_rows(far.problem, tensor.role, order);
    if (memory.rows < 2 || memory.row < 1) return {};
    // Not earlier than a quarter of the rows, so that the addresses themselves suffice.
    const std::int64_t first = std::max<std::int64_t>(memory.rows / 4, 1);
    const std::int64_t at = first + drawn(2, memory.rows - first);
    const std::int64_t apart = (limit + at - 1) / at + drawn(3, 8);
    far.past = past;
    far.problem.*tensor.layout = {order, apart - memory.row, 0};
    return far;
}

Plan far_rows_do_not_show(const Given& given) {
    std::vector<FarProblem> others;
    for (std::size_t index = 0; index < laid_out.size(); ++index) {
        FarProblem other = far_apart(given, index);
        if (other.far != nullptr && given.supports(other.problem)) others.push_back(other);
    }
    if (others.empty())
        return not_applicable("no tensor has two rows, or the kernel takes none so far apart");
    return [others](const Trial& trial) -> Judgement {
        const Run first(trial);
        Relation relation;
        relation.rows = defined_rows(first);
        Judgement sum;
        for (const FarProblem& other : others) {
            if (sum.violated()) break;
            relation.sentence = [&](const RowMatch& match) {
                return name_of(first.problem(), match.first) + " gets another answer where " +
                       other.far + " lie past element " + other.past + " of their tensor";
            };
            sum = merge(std::move(sum),
                        compare_runs(first, Run(trial, other.problem, first.inputs()), relation));
        }
        return sum;
    };
}

/// What offsets of 32 bits make of keys: those past the limit are read elsewhere.
void far_keys_read_as_zero(Question& q) {
    const Layout& layout = q.problem.layout_k;
    constexpr std::int64_t past = std::int64_t{1} << 31;
    const MemoryRows memory = memory_rows(q.problem, Role::k, layout.order);
    if ((memory.row + layout.row_pad) * (memory.rows - 1) < past) return;
    Tensor& keys = q.inputs[Role::k];
    for (std::int64_t at = 0; at < keys.size(); ++at) keys.set(at, 0);
}

Property large_index() {
    Property law{
        .id = "hygiene.large_index",
        .statement =
            "A tensor whose rows lie more than 2^31 or 2^32 elements from its first one "
            "gives the same answer.",
        .statement_short = "offsets past 2^31 and 2^32 elements are right",
        .why =
            "Strides are 64 bits wide, and say where an element lies, not what it is. An offset "
            "or a stride cut to 32 bits names another element, or none of the tensor's: the "
            "answers differ, or the worker meets a guard page. The runs agree within the sum "
            "of their bounds.",
        .source = "https://github.com/Dao-AILab/flash-attention/issues/2611",
        .compares = Compares::bound,
        .cases = {.allow = attention,
                  .require = FeatureSet(Feature::layout),
                  .cost = 8,
                  .scores_max = 4096,
                  .len_max = 64,
                  .dim_max = 64,
                  .limited_because = "each row takes pages of its own",
                  .admits = few_rows},
        .cases_enough = 16,
        .check = far_rows_do_not_show,
        .turned_red_by = {{.id = "far_keys_read_as_zero", .asks = far_keys_read_as_zero}},
    };
    return law;
}

}  // namespace

std::vector<Property> hygiene_of_offsets() {
    return {large_index()};
}

}  // namespace attest::law
