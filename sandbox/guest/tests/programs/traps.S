# Traps, interrupts, user mode, and control registers.

    .include "harness.inc"
    .equ SPP, 1 << 8
    .equ SIE, 1 << 1
    install

# Illegal instructions tell their bits.
    catch 1f
    .word 0xffffffff
1:  check 1, s10, 2
    li a0, 0xffffffff
    same 2, s11, a0
    catch 1f
    .half 0
    .half 0
1:  check 3, s10, 2
    check 4, s11, 0
    catch 1f
    csrr a0, mstatus
1:  check 5, s10, 2
    catch 1f
    csrw time, x0
1:  check 6, s10, 2
    catch 1f
2:  ebreak
1:  check 7, s10, 3
    la a0, 2b
    same 8, s11, a0
    same 9, s9, a0

# `csrrs` with x0 does not write, so it may read what is read-only.
    li a0, 7
    csrw scounteren, a0
    csrrs a0, cycle, x0
    csrrci a1, scounteren, 0
    check 10, a1, 7
    li a0, 0xff
    csrrw a1, sscratch, a0
    csrrci a1, sscratch, 0x1f
    csrrsi a1, sscratch, 1
    check 11, a1, 0xe0
    csrr a1, sscratch
    check 12, a1, 0xe1

# Floating point is off until sstatus.FS says otherwise.
    li a0, 3 << 13
    csrc sstatus, a0
    catch 1f
    fadd.d fa0, fa0, fa0
1:  check 20, s10, 2
    catch 1f
    csrr a0, fcsr
1:  check 21, s10, 2
    li a0, 1 << 13
    csrs sstatus, a0
    csrr a0, sstatus
    srli a0, a0, 63
    check 22, a0, 0
    fmv.d.x fa0, x0
    csrr a0, sstatus
    srli a0, a0, 63
    check 23, a0, 1
# Reserved rounding modes, in the instruction and in frm.
    catch 1f
    .word 0x02a55553 & ~(7 << 12) | 5 << 12
1:  check 24, s10, 2
    li a0, 6
    fsrm a0
    catch 1f
    fadd.d fa0, fa0, fa0
1:  check 25, s10, 2
    fadd.d fa0, fa0, fa0, rne
    fsrm x0

# User mode: privileged instructions are illegal, calls have their own cause.
    la a0, user
    csrw sepc, a0
    li a0, SPP
    csrc sstatus, a0
    catch 1f
    sret
    .balign 4
user:
    ecall
1:  check 30, s10, 8
    la a0, user
    same 31, s9, a0
    la a0, user_sret
    csrw sepc, a0
    li a0, SPP
    csrc sstatus, a0
    catch 1f
    sret
user_sret:
    sret
1:  check 32, s10, 2
    la a0, user_csr
    csrw sepc, a0
    li a0, SPP
    csrc sstatus, a0
    catch 1f
    sret
user_csr:
    csrr a0, sscratch
1:  check 33, s10, 2
    csrw scounteren, x0
    la a0, user_time
    csrw sepc, a0
    li a0, SPP
    csrc sstatus, a0
    catch 1f
    sret
user_time:
    rdtime a0
1:  check 34, s10, 2

# A software interrupt waits until it is enabled.
    catch 1f
    csrsi sip, 2
    csrsi sie, 2
    csrr a0, sip
    check 40, a0, 2
    csrsi sstatus, SIE
2:  j 2b
1:  li a0, 1 << 63 | 1
    same 41, s10, a0
    csrci sip, 2
    csrci sstatus, SIE

# An interrupt that waits comes right behind what lets it in.
    csrw sie, x0
    csrsi sip, 2
    csrsi sstatus, SIE
    nop
    la a0, 1f
    catch 2f
    li a1, 2
    li a2, 0
    csrw sie, a1
1:  addi a2, a2, 1
    addi a2, a2, 1
2:  check 46, a2, 0
    li a1, 1 << 63 | 1
    same 47, s10, a1
    same 48, s9, a0
    la a0, 1f
    catch 2f
    csrsi sstatus, SIE
1:  addi a2, a2, 1
    addi a2, a2, 1
2:  check 49, a2, 0
    same 49, s9, a0
    csrci sip, 2
    csrci sstatus, SIE

# A timer interrupt comes when it is due, and vectored it has its own entry.
    la a0, vectors + 1
    csrw stvec, a0
    li a0, 32
    csrw sie, a0
    rdtime a0
    addi a0, a0, 50
    mv s5, a0
    li a7, 0x54494d45
    li a6, 0
    ecall
    check 50, a0, 0
    csrsi sstatus, SIE
1:  wfi
    j 1b
    .balign 4
vectors:
    j fail
    .balign 4
    j fail
    .balign 4
    j fail
    .balign 4
    j fail
    .balign 4
    j fail
    .balign 4
    j timer
timer:
    rdtime a0
    li gp, 51
    bltu a0, s5, fail
    csrr a0, scause
    li a1, 1 << 63 | 5
    same 52, a0, a1
    finish
