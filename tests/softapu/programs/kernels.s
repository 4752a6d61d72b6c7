// SPDX-License-Identifier: MIT
// Kernels for the software APU. The words after s_endpgm tell it what they stand for: "APUH",
// operation (0 nothing, 1 fill32, 2 timed), nanoseconds per workgroup on one CU at the reference
// clock; a timed kernel takes these from its arguments: one uint64_t.
// On a real GPU all of them end at once.
.macro KERNEL name, operation, ns, kernarg
  .text
  .protected \name
  .globl \name
  .p2align 8
  .type \name,@function
\name:
  s_endpgm
  .if \ns
  .long 0x48555041, \operation, \ns
  .endif
  .size \name, .-\name
  .section .rodata,"a",@progbits
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 1
    .amdhsa_next_free_sgpr 8
#ifdef __gfx942__
    .amdhsa_accum_offset 4
#endif
  .end_amdhsa_kernel
.endm
KERNEL noop, 0, 0, 0
KERNEL work_1us, 0, 1000, 0
KERNEL work_10us, 0, 10000, 0
KERNEL work_100us, 0, 100000, 0
KERNEL work_1ms, 0, 1000000, 0
KERNEL fill32, 1, 1000, 12
KERNEL timed, 2, 1000, 8
.amdgpu_metadata
---
amdhsa.version: [ 1, 1 ]
amdhsa.kernels:
  - { .name: noop, .symbol: noop.kd, .kernarg_segment_size: 0, .kernarg_segment_align: 8,
      .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 8, .vgpr_count: 1, .max_flat_workgroup_size: 256 }
  - { .name: work_1us, .symbol: work_1us.kd, .kernarg_segment_size: 0, .kernarg_segment_align: 8,
      .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 8, .vgpr_count: 1, .max_flat_workgroup_size: 256 }
  - { .name: work_10us, .symbol: work_10us.kd, .kernarg_segment_size: 0, .kernarg_segment_align: 8,
      .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 8, .vgpr_count: 1, .max_flat_workgroup_size: 256 }
  - { .name: work_100us, .symbol: work_100us.kd, .kernarg_segment_size: 0, .kernarg_segment_align: 8,
      .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 8, .vgpr_count: 1, .max_flat_workgroup_size: 256 }
  - { .name: work_1ms, .symbol: work_1ms.kd, .kernarg_segment_size: 0, .kernarg_segment_align: 8,
      .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 8, .vgpr_count: 1, .max_flat_workgroup_size: 256 }
  - { .name: fill32, .symbol: fill32.kd, .kernarg_segment_size: 12, .kernarg_segment_align: 8,
      .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 8, .vgpr_count: 1, .max_flat_workgroup_size: 256 }
  - { .name: timed, .symbol: timed.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8,
      .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32,
      .sgpr_count: 8, .vgpr_count: 1, .max_flat_workgroup_size: 256 }
...
.end_amdgpu_metadata
