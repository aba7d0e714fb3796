// The example program of one network, MODEL.
#include "run.hpp"

int main() { return models::run(MODEL); }
