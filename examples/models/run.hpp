// Runs an example network, eight times narrower, at five sizes: one program for all, and what each
// size costs.
#pragma once

namespace models {

/// 0, or 1 after a message on stderr.
int run(const char* name);

}  // namespace models
