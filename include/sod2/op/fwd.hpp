// Declarations of op/.
#pragma once

namespace sod2 {
struct op_info;
struct op_row;
class registry;
template <class Domain>
class transfer_context;
class symbolic_domain;
using symbolic_transfer = transfer_context<symbolic_domain>;
}  // namespace sod2
