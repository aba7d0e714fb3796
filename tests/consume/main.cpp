#include <sod2/core.hpp>
#include <sod2/version.hpp>

int main() { return SOD2_VERSION_MAJOR == 0 ? 0 : 1; }
