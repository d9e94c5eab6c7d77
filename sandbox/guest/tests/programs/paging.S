# Sv39: permissions, faults and their values, accessed and dirty bits, pages
# that meet. The program itself runs in an identity-mapped superpage.

    .include "harness.inc"
    .equ V, 1
    .equ R, 2
    .equ W, 4
    .equ X, 8
    .equ U, 16
    .equ A, 64
    .equ D, 128
    .equ SUM, 1 << 18
    .equ MXR, 1 << 19
    install
# root[2]: the gigabyte of RAM; root[0] -> middle -> leaf: pages at 0.
    la s0, root
    li a0, 0x80000000 >> 2 | V | R | W | X | A | D
    sd a0, 16(s0)
    la s1, middle
    srli a0, s1, 2
    ori a0, a0, V
    sd a0, 0(s0)
    la s2, leaf
    srli a0, s2, 2
    ori a0, a0, V
    sd a0, 0(s1)
    la s3, page
    srli s4, s3, 2              # the page, as an entry without flags
    srli a0, s0, 12
    li a1, 8 << 60
    or a0, a0, a1
    csrw satp, a0
    sfence.vma

# Nothing is mapped at 0x1000 yet.
    li s5, 0x1000
    catch 1f
    ld a0, 8(s5)
    j fail
1:  check 1, s10, 13
    check 2, s11, 0x1008

# A read-only page: loads set the accessed bit only, stores fault.
    ori a0, s4, V | R
    sd a0, 8(s2)
    sfence.vma
    ld a0, 8(s5)
    check 3, a0, 0x1234
    ld a0, 8(s2)
    andi a0, a0, 0xff
    check 4, a0, V | R | A
    catch 1f
    sd a0, 8(s5)
    j fail
1:  check 5, s10, 15
    check 6, s11, 0x1008

# A writable one: the first store sets the dirty bit.
    ori a0, s4, V | R | W
    sd a0, 8(s2)
    sfence.vma s5, x0
    ld a0, 0(s5)
    sd a0, 16(s5)
    ld a0, 8(s2)
    andi a0, a0, 0xff
    check 7, a0, V | R | W | A | D

# Not executable, and then only that: loads need MXR.
    catch 1f
    jr s5
1:  check 10, s10, 12
    check 11, s11, 0x1000
    check 12, s9, 0x1000
    ori a0, s4, V | X
    sd a0, 8(s2)
    sfence.vma
    catch 1f
    ld a0, 8(s5)
    j fail
1:  check 13, s10, 13
    li a1, MXR
    csrs sstatus, a1
    ld a0, 8(s5)
    check 14, a0, 0x1234
    csrc sstatus, a1
    catch 1f
    ld a0, 8(s5)
    j fail
1:  check 15, s10, 13

# A user page: not without SUM, never to execute.
    ori a0, s4, V | R | W | X | U
    sd a0, 8(s2)
    sfence.vma
    catch 1f
    ld a0, 8(s5)
    j fail
1:  check 20, s10, 13
    li a1, SUM
    csrs sstatus, a1
    ld a0, 8(s5)
    check 21, a0, 0x1234
    catch 1f
    jr s5
1:  check 22, s10, 12
    li a1, SUM
    csrc sstatus, a1

# Addresses that are not canonical, entries that may not be.
    li a2, 1 << 39
    catch 1f
    ld a0, 0(a2)
    j fail
1:  check 30, s10, 13
    same 31, s11, a2
    ori a0, s4, V | W
    sd a0, 8(s2)
    sfence.vma
    catch 1f
    ld a0, 0(s5)
    j fail
1:  check 32, s10, 13
    li a0, 0x80001000 >> 2 | V | R | W | A | D
    sd a0, 8(s1)                # a misaligned superpage at 0x200000
    sfence.vma
    li a2, 0x200000
    catch 1f
    ld a0, 0(a2)
    j fail
1:  check 33, s10, 13
    li a0, 0x80000000 >> 2 | V | R | W | A | D
    sd a0, 8(s1)
    sfence.vma
    la a1, page
    li a2, 0x80000000 - 0x200000
    sub a1, a1, a2
    ld a0, 8(a1)
    check 34, a0, 0x1234

# An access over the end of a page faults for the page that is not there, and
# stores nothing.
    ori a0, s4, V | R | W
    sd a0, 8(s2)
    sd x0, 16(s2)
    sfence.vma
    li a2, 0x1ffc
    li a1, -1
    catch 1f
    sd a1, 0(a2)
    j fail
1:  check 40, s10, 15
    check 41, s11, 0x2000
    lw a0, 0(a2)
    check 42, a0, 0
    catch 1f
    ld a0, 0(a2)
    j fail
1:  check 43, s10, 13
    check 44, s11, 0x2000

# So does an instruction; its own address is the trap's.
    li a0, 0x0593               # the low half of `li a1, ...`
    sh a0, 2(a2)
    ori a0, s4, V | R | X
    sd a0, 8(s2)
    sfence.vma
    fence.i
    addi a2, a2, 2
    catch 1f
    jr a2
1:  check 50, s10, 12
    check 51, s11, 0x2000
    check 52, s9, 0x1ffe

# With the second page there it runs; the pages need not be neighbours.
    la s6, code
    srli a0, s6, 2
    ori a0, a0, V | X
    sd a0, 16(s2)
    sfence.vma
    la ra, 1f
    jr a2
1:  check 53, a1, 42

# After a flush a page is where its entry says.
    la a0, other
    srli a0, a0, 2
    ori a0, a0, V | R
    sd a0, 8(s2)
    sfence.vma s5, x0
    ld a0, 8(s5)
    check 60, a0, 0x5678
    csrw satp, x0
    sfence.vma
    finish

    .balign 4096
root: .fill 4096
middle: .fill 4096
leaf: .fill 4096
page: .dword 0, 0x1234
    .fill 4080
    .balign 4096
other: .dword 0, 0x5678
    .balign 4096
code: .half 42 << 4             # the high half of `li a1, 42`
    ret
    .balign 4096
