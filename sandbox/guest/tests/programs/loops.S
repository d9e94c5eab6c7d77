# Bare loops for `examples/mips.rs`: each at a multiple of 256 bytes, without
# end, with s0 pointing at data. Rebuild: `A99_ASSEMBLE=1 cargo test -p a99-sandbox-guest
# --test programs`.

    .macro loop name
    .balign 256
\name:
    .endm

    loop arithmetic
1:  addi a0, a0, 1
    xor a1, a1, a0
    slli a2, a1, 3
    add a3, a3, a2
    srli a4, a3, 7
    sub a5, a5, a4
    and a6, a5, a3
    or a7, a6, a0
    bnez a0, 1b

    loop memory
1:  ld a1, 0(s0)
    addi a0, a0, 1
    add a1, a1, a0
    sd a1, 0(s0)
    lw a2, 8(s0)
    addw a2, a2, a0
    sw a2, 8(s0)
    lbu a3, 16(s0)
    bnez a0, 1b

    loop calls
1:  jal ra, 2f
    addi a0, a0, 1
    bnez a0, 1b
2:  addi sp, sp, -16
    add a1, a1, a0
    addi sp, sp, 16
    ret

    loop branches
    li s1, 16384
0:  li a0, 0
1:  add a1, s0, a0
    lbu a2, 0(a1)
    bnez a2, 2f
    addi a3, a3, 1
2:  slli a4, a0, 1
    xor a5, a5, a4
    addi a0, a0, 1
    blt a0, s1, 1b
    j 0b

    loop floats
    li a0, 3
    fcvt.d.l fa0, a0
1:  fmul.d fa1, fa0, fa0
    fadd.d fa2, fa2, fa1
    fdiv.d fa3, fa2, fa0
    addi a0, a0, 1
    bnez a0, 1b
