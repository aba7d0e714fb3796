// Every law of the table as a constant expression: compile-time sizes are computed by the same
// code.
#include <cstddef>
#include <utility>

#include <laws/expr.hpp>

template <std::size_t Law>
struct checked {
  static_assert(laws::holds(laws::expression_laws[Law]), "the law with this number does not hold");
};

template <std::size_t... Laws>
constexpr bool check_all(std::index_sequence<Laws...>) {
  return (sizeof(checked<Laws>) + ... + 0) > 0;
}
static_assert(check_all(std::make_index_sequence<laws::expression_law_count>{}));
