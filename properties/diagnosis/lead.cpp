#include "properties/diagnosis/lead.hpp"

#include <algorithm>
#include <tuple>

#include "properties/law/property.hpp"
#include "properties/search/size_order.hpp"

namespace attest::diagnosis {

namespace {

auto rank(const CounterexampleReport& c) {
    const law::Property* law = law::find_property(c.example.law);
    const law::Tells tells = law == nullptr ? law::Tells::nothing : law->tells;
    const bool telling =
        tells != law::Tells::nothing && tells == (c.died() ? law::Tells::death : c.diagnosis.tells);
    const int kind = telling ? 0 : tells == law::Tells::truth ? 1 : 2;
    const search::SizeKey size = search::size_key(c.example.smallest);
    const std::int64_t scores = kind == 0 ? size.numbers.front() : 0;
    const std::ptrdiff_t place = kind < 2 ? law - law::catalogue().data() : 0;
    const bool alone = c.example.confirmed.how == search::Confirmation::alone;
    const bool known = c.diagnosis.known && !c.diagnosis.general;
    const bool whole = c.diagnosis.agree == c.diagnosis.of;
    // A death says more than an answer without a name.
    return std::tuple(!known, known ? !whole : !c.died(), !alone, kind, scores, place, size);
}

}  // namespace

std::size_t lead_of(const std::vector<std::size_t>& members,
                    const std::vector<CounterexampleReport>& counterexamples) {
    return *std::min_element(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
        return rank(counterexamples[a]) < rank(counterexamples[b]);
    });
}

}  // namespace attest::diagnosis
