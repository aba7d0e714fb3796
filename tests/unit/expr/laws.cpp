// The table of laws at run time, and in a context that already knows other things.
#include <doctest/doctest.h>

#include <laws/expr.hpp>

TEST_CASE("laws of symbolic sizes") {
  for (const laws::law& law : laws::expression_laws) {
    CAPTURE(law.name);
    CHECK(laws::holds(law));
  }
}
