# What translated code does on ways of its own: frames of the stack that lie on
# two pages, accesses that are not aligned, calls on a page, and double precision
# arithmetic with and without exceptions.

    .include "harness.inc"
    install
    la s1, data
    li s0, 40
    li a0, 0
rounds:
    li a1, 2
pages:
    slli a2, a1, 12
    add sp, s1, a2
    addi sp, sp, -24
    jal frame
    addi sp, sp, 8
    jal unaligned
    addi a1, a1, -1
    bnez a1, pages
    addi s0, s0, -1
    bnez s0, rounds
    check 1, a0, 0xe504ae9cead6d434

    li t0, 0x6000
    csrs sstatus, t0
    csrwi fcsr, 0
    li s0, 60
    li a0, 3
    fcvt.d.l fa0, a0
    li a0, 1
    fcvt.d.l fa1, a0
series:
    fdiv.d fa1, fa1, fa0
    fadd.d fa1, fa1, fa0
    fmul.d fa2, fa1, fa1
    fsub.d fa1, fa2, fa1
    fdiv.d fa1, fa1, fa2
    addi s0, s0, -1
    bnez s0, series
    fmv.x.d a0, fa1
    check 2, a0, 0x3fe617e2caa2b537
    csrr a0, fflags
    check 3, a0, 1

# Inexact is noted; other flags are still raised, and modes obeyed.
    li a0, 0x0018000000000001
    fmv.d.x fa0, a0
    li a0, 0x3fe0000000000000
    fmv.d.x fa1, a0
    li s0, 3
tiny:
    fmul.d fa2, fa0, fa1
    addi s0, s0, -1
    bnez s0, tiny
    csrr a0, fflags
    check 4, a0, 3
    fmv.d.x fa2, zero
    fdiv.d fa2, fa0, fa2
    csrr a0, fflags
    check 5, a0, 11
    csrwi frm, 3
    li a0, 1
    fcvt.d.l fa0, a0
    li a0, 3
    fcvt.d.l fa1, a0
    fdiv.d fa2, fa0, fa1
    fmv.x.d a0, fa2
    check 6, a0, 0x3fd5555555555556
    fdiv.d fa2, fa0, fa1, rne
    fmv.x.d a0, fa2
    check 7, a0, 0x3fd5555555555555
    csrwi frm, 0
    fdiv.d fa2, fa0, fa1, rup
    fmv.x.d a0, fa2
    check 8, a0, 0x3fd5555555555556
    finish

frame:
    addi sp, sp, -16
    sd a0, 0(sp)
    sd s0, 8(sp)
    sd a1, 32(sp)
    sd a0, 48(sp)
    addi a0, a0, 3
    ld a3, 48(sp)
    ld a4, 8(sp)
    ld a5, 32(sp)
    add a0, a0, a3
    xor a0, a0, a4
    add a0, a0, a5
    addi sp, sp, 16
    ret

unaligned:
    addi a4, sp, 3
    sd a0, 0(a4)
    addi a4, sp, 5
    lw a3, 0(a4)
    add a0, a0, a3
    addi a4, sp, 13
    sw a0, 0(a4)
    lwu a3, 0(a4)
    add a0, a0, a3
    ret

    .balign 4096
data:
# Three pages from here on.
