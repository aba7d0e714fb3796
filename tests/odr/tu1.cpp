// Two units that include every umbrella must link: nothing non-inline stands in a header.
#include "everything.hpp"

int other_unit();

int main() { return other_unit(); }
