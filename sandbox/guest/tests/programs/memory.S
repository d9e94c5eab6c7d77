# Loads, stores, alignment and atomics.

    .include "harness.inc"
    install
    la s0, data
    lb a0, 7(s0)
    check 1, a0, -127
    lbu a0, 7(s0)
    check 2, a0, 129
    lh a0, 6(s0)
    check 3, a0, 0xffffffffffff8107
    lhu a0, 6(s0)
    check 4, a0, 0x8107
    lw a0, 4(s0)
    check 5, a0, 0xffffffff81070605
    lwu a0, 4(s0)
    check 6, a0, 0x81070605

# Misaligned, inside a page and over its end.
    ld a0, 1(s0)
    check 10, a0, 0x1181070605040302
    la s1, edge
    li a1, 0x1122334455667788
    sd a1, -3(s1)
    ld a0, -3(s1)
    same 11, a0, a1
    lbu a0, -1(s1)
    check 12, a0, 0x66
    lbu a0, 0(s1)
    check 13, a0, 0x55
    lw a0, -2(s1)
    check 14, a0, 0x44556677
    sh a1, -1(s1)
    lhu a0, -1(s1)
    check 15, a0, 0x7788

# A store-conditional needs a reservation of its own place.
    la s0, place
    li a1, 7
    sc.d a0, a1, (s0)
    check 20, a0, 1
    lr.d a2, (s0)
    sc.d a0, a1, (s0)
    check 21, a0, 0
    ld a2, 0(s0)
    check 22, a2, 7
    sc.d a0, a1, (s0)
    check 23, a0, 1
    lr.w a2, (s0)
    addi a3, s0, 8
    sc.w a0, a1, (a3)
    check 24, a0, 1

# Atomics extend words and compare as their names say.
    li a1, -1
    sd a1, 0(s0)
    li a1, 1
    amoadd.w a0, a1, (s0)
    check 30, a0, -1
    ld a0, 0(s0)
    check 31, a0, 0xffffffff00000000
    amomaxu.w a0, a1, (s0)
    li a1, -5
    amomin.w a0, a1, (s0)
    check 32, a0, 1
    amomaxu.d x0, a1, (s0)
    ld a0, 0(s0)
    check 33, a0, 0xfffffffffffffffb
    li a1, 3
    amomax.d a0, a1, (s0)
    amoswap.d a0, x0, (s0)
    check 34, a0, 3

# Misaligned atomics trap; nothing answers at address 0.
    catch 1f
    addi a0, s0, 4
    amoadd.d x0, x0, (a0)
    j fail
1:  check 40, s10, 6
    same 41, s11, a0
    catch 1f
    lr.d a1, (a0)
    j fail
1:  check 42, s10, 4
    catch 1f
    ld a1, 16(x0)
    j fail
1:  check 43, s10, 5
    check 44, s11, 16
    catch 1f
    sw a1, 16(x0)
    j fail
1:  check 45, s10, 7
    catch 1f
    jr x0
1:  check 46, s10, 1
    check 47, s9, 0

# A block is cleared, and no byte beside it.
    .option arch, +zicboz
    la s0, before
    la s1, edge
    li a1, -1
    sd a1, 0(s0)
    sd a1, 0(s1)
    li a2, 4096
    add a2, s1, a2
    sd a1, -8(a2)
    sd a1, 0(a2)
    addi a0, s1, 100
    cbo.zero (a0)
    ld a0, 0(s0)
    same 50, a0, a1
    ld a0, 0(s1)
    check 51, a0, 0
    ld a0, -8(a2)
    check 52, a0, 0
    ld a0, 0(a2)
    same 53, a0, a1
    catch 1f
    li a0, 16
    cbo.zero (a0)
    j fail
1:  check 54, s10, 7
    check 55, s11, 16

# User mode may do so when it is told.
    la s2, 2f
    csrw sepc, s2
    li a0, 0x100
    csrc sstatus, a0
    catch 1f
    csrw senvcfg, x0
    sret
2:  cbo.zero (s1)
1:  check 56, s10, 2
    sd a1, 0(s1)
    li a0, -1
    csrw senvcfg, a0
    csrr a0, senvcfg
    check 57, a0, 0x80
    la s2, 2f
    csrw sepc, s2
    li a0, 0x100
    csrc sstatus, a0
    catch 1f
    sret
2:  cbo.zero (s1)
    ecall
1:  check 58, s10, 8
    ld a0, 0(s1)
    check 59, a0, 0
    finish

    .balign 8
data: .byte 1, 2, 3, 4, 5, 6, 7, 0x81, 0x11, 0, 0, 0, 0, 0, 0, 0
place: .dword 0, 0
    .balign 4096
    .skip 4088
before: .dword 0
edge: .skip 4096
    .dword 0
