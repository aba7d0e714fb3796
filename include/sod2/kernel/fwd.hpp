// Names of kernel/ without their definitions.
#pragma once

namespace sod2 {

struct thread_pool_ref;
struct operand_info;
struct prepare_args;
class kernel_state;
struct kernel_args;
struct kernel_row;
struct kernel_table;
struct tile_instruction;
struct tile_operand;
struct tile_program;
class tile_builder;
struct tile_call;
struct epilogue_call;
struct pointwise_row;
struct simd_table;  // microkernels of one instruction set, private to kernel/

}  // namespace sod2
