# Code that changes, and code on two pages.

    .include "harness.inc"
    install
# After `fence.i` the new instruction runs.
    la s0, patch
    la s1, donor
    call patch
    check 1, a0, 1
    lw a1, 0(s1)
    sw a1, 0(s0)
    fence.i
    call patch
    check 2, a0, 2
# Also where the page was written in between, and by a narrow store.
    li a1, 0x13
    sb a1, 0(s0)
    li a1, 0x05
    sb a1, 1(s0)
    li a1, 0x0030
    sh a1, 2(s0)
    fence.i
    call patch
    check 3, a0, 3
# A loop over the end of a page, with an instruction on both; then the same
# after the half on the second page has changed.
    la s0, edge
    li a1, 100
    li a0, 0
    la ra, 1f
    jr s0
1:  check 10, a0, 100
    li a2, 0x0025               # the high half of `addi a0, a0, 2`
    sh a2, 2(s0)
    fence.i
    li a1, 10
    li a0, 0
    la ra, 1f
    jr s0
1:  check 11, a0, 20
# A jump on two pages, to where other jumps have been before.
    la s0, jump
    li a1, 4
    li a2, 0
    la ra, 1f
    ret
1:  addi a1, a1, -1
    beqz a1, 2f
    ret
2:  bnez a2, 3f
    li a2, 1
    li a1, 1
    jr s0
3:  check 12, a2, 1
    finish

    .balign 4096
    .option norvc
patch:
    li a0, 1
    ret
donor:
    li a0, 2
    .option rvc
    .balign 4096
    .fill 4094, 1, 0
    .option norvc
edge:
    addi a0, a0, 1
    .option rvc
    addi a1, a1, -1
    bnez a1, edge
    ret
    .balign 4096
    .fill 4094, 1, 0
    .option norvc
jump:
    jr ra
    .option rvc
    .balign 4096
