# Integer arithmetic: corner cases of RV64I and M, in the manner of riscv-tests.

    .include "harness.inc"
    rr 1, add, 0x7fffffffffffffff, 1, 0x8000000000000000
    rr 2, sub, 0, 1, -1
    rr 3, sll, 1, 127, 0x8000000000000000
    rr 4, srl, -1, 63, 1
    rr 5, sra, 0x8000000000000000, 63, -1
    rr 6, slt, -1, 0, 1
    rr 7, sltu, -1, 0, 0
    rr 8, xor, 0x0ff00ff0, 0x00ff00ff, 0x0f0f0f0f
    rr 9, or, 0xf0, 0x0f, 0xff
    rr 10, and, 0xff, 0x3c, 0x3c
    rr 11, addw, 0x7fffffff, 1, 0xffffffff80000000
    rr 12, subw, 0x80000000, 1, 0x7fffffff
    rr 13, sllw, 1, 63, 0xffffffff80000000
    rr 14, srlw, 0xffffffff80000000, 31, 1
    rr 15, sraw, 0x0000000080000000, 31, -1
    rr 16, mul, 0x100000001, 0x100000001, 0x200000001
    rr 17, mulh, -1, -1, 0
    rr 18, mulhu, -1, -1, -2
    rr 19, mulhsu, -1, -1, -1
    rr 20, mulw, 0x80000001, 3, 0xffffffff80000003
    rr 21, div, -7, 2, -3
    rr 22, div, 7, 0, -1
    rr 23, div, 0x8000000000000000, -1, 0x8000000000000000
    rr 24, divu, 7, 0, -1
    rr 25, rem, -7, 2, -1
    rr 26, rem, 7, 0, 7
    rr 27, rem, 0x8000000000000000, -1, 0
    rr 28, remu, 7, 0, 7
    rr 29, divw, 0x80000000, -1, 0xffffffff80000000
    rr 30, divuw, 0x80000000, 0x100000000, -1
    rr 31, remw, 0x80000000, -1, 0
    rr 32, remuw, 0xffffffff80000000, 0x100000000, 0xffffffff80000000

# Writes to x0 are lost, also of instructions with effects.
    la a0, word
    lw x0, 0(a0)
    addi x0, x0, 5
    mv a1, x0
    check 40, a1, 0

# Jumps clear bit 0 and link behind themselves.
    la a0, 1f + 1
    jalr a1, 0(a0)
    j fail
1:  la a2, 1b - 2
    same 41, a1, a2
    jal a1, 1f
    j fail
    .option norvc
2:  auipc a0, 1
    .option rvc
    la a1, 2b + 0x1000
    same 43, a0, a1
    j 3f
1:  la a2, 2b - 2
    same 42, a1, a2
    j 2b
3:
    li a0, -1
    li a1, 1
    bltu a0, a1, fail
    bge a0, a1, fail
    finish
    .balign 8
word: .word 1
