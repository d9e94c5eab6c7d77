//! Decoded instruction, in the form that the interpreter runs.
//!
//! Eight bytes: an operation, three register numbers and an immediate. Decoding
//! has already sign-extended immediates, expanded compressed instructions,
//! replaced writes to `x0` by writes to [`SINK`], and made branch offsets
//! relative to the start of the block.

/// Register number that receives the program's writes to `x0`.
pub const SINK: u8 = 32;

/// One decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inst {
    /// Operation.
    pub op: Op,
    /// Destination register.
    pub rd: u8,
    /// First source register; the immediate of `csrr?i`.
    pub rs1: u8,
    /// Second source register.
    pub rs2: u8,
    /// Immediate, CSR number, raw bits ([`Op::Illegal`]), or for floating point
    /// the rounding mode in bits 0-2 and the third source in bits 8-12.
    pub imm: i32,
}

/// Defines the operations: those that decode from a row of the table in `table.rs`, and
/// those that only the block builder makes.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// An operation; names are those of the instruction set manual.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the names are the mnemonics")]
        pub enum Op {
            $($(#[$doc])* $name),*
        }

        impl Op {
            /// All operations, in the order of their numbers.
            pub const ALL: &[Op] = &[$(Op::$name),*];
        }
    };
}

operations! {
    /// No effect: a hint, a fence of one hart, or a pure write to `x0`.
    Nop,
    /// The block ends without a jump.
    End,
    /// An instruction that crosses a page boundary; run in a separate block.
    PageCrossing,
    /// An illegal instruction; `imm` holds its bits.
    Illegal,
    Lui, Auipc, Jal, Jalr,
    Beq, Bne, Blt, Bge, Bltu, Bgeu,
    Lb, Lh, Lw, Ld, Lbu, Lhu, Lwu,
    Sb, Sh, Sw, Sd,
    Addi, Slti, Sltiu, Xori, Ori, Andi, Slli, Srli, Srai,
    Add, Sub, Sll, Slt, Sltu, Xor, Srl, Sra, Or, And,
    Addiw, Slliw, Srliw, Sraiw, Addw, Subw, Sllw, Srlw, Sraw,
    Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu,
    Mulw, Divw, Divuw, Remw, Remuw,
    CboZero, Fence, FenceI, Ecall, Ebreak, Sret, Wfi, SfenceVma,
    Csrrw, Csrrs, Csrrc, Csrrwi, Csrrsi, Csrrci,
    LrW, ScW, AmoSwapW, AmoAddW, AmoXorW, AmoAndW, AmoOrW,
    AmoMinW, AmoMaxW, AmoMinuW, AmoMaxuW,
    LrD, ScD, AmoSwapD, AmoAddD, AmoXorD, AmoAndD, AmoOrD,
    AmoMinD, AmoMaxD, AmoMinuD, AmoMaxuD,
    Flw, Fld, Fsw, Fsd,
    FmaddS, FmsubS, FnmsubS, FnmaddS, FmaddD, FmsubD, FnmsubD, FnmaddD,
    FaddS, FsubS, FmulS, FdivS, FsqrtS, FsgnjS, FsgnjnS, FsgnjxS, FminS, FmaxS,
    FcvtWS, FcvtWuS, FcvtLS, FcvtLuS, FmvXW, FeqS, FltS, FleS, FclassS,
    FcvtSW, FcvtSWu, FcvtSL, FcvtSLu, FmvWX,
    FaddD, FsubD, FmulD, FdivD, FsqrtD, FsgnjD, FsgnjnD, FsgnjxD, FminD, FmaxD,
    FcvtWD, FcvtWuD, FcvtLD, FcvtLuD, FmvXD, FeqD, FltD, FleD, FclassD,
    FcvtDW, FcvtDWu, FcvtDL, FcvtDLu, FmvDX, FcvtSD, FcvtDS,
    /// From here on: operations fused with the following ones (`fuse.rs`).
    LdRun,
    SdRun, SlliwSrliwOr,
    SumSum, SumLd, SumLw, SumLbu, SumSd, SumSw, SumSb,
    SumBeq, SumBne, SumBltu, SumJal, SumJalr,
    LdSum, LwSum, LbuSum, SdSum, SwSum, SbSum, LdSd, SdLd,
    LdBeq, LdBne, LbuBeq, LbuBne,
    SlliSum, SlliSrli, AndiBeq, AndiBne, AuipcLd, AuipcSum, AddwAddw, OrXor,
    SumBlt, SumBge, SumAndi, SlliOr, OrSlli, AndiSum, AndSum, OrAddiw, AddiwAddiw,
    SlliBlt, SlliBge, AddiwBeq, AddiwBne, AddiwJal, SrliAndi,
    LdLd, LdSlli, LdSrli, LdAndi, LdJalr, LbuLbu, LbuSlli, LwuLwu, LwBeq, LwBne,
    SdJal, SdJalr, SwSw, FsdFsd,
    LdRunSumJalr, SumSdRun, SumSumSum, SumSumJal, SumSumBeq, SumSumBne, SumLdSum,
    LbuSumBne, SumLbuBne, SumSbBne, LdSumBeq, LdSumBne, SrliAndiBeq, SrliAndiBne,
    /// Enters translated code: function `imm` of the table, at node `rs1`.
    Enter,
}

impl Op {
    /// Whether control may leave the straight line after this operation, which ends its
    /// block.
    pub fn ends_block(self) -> bool {
        use Op::*;
        matches!(
            self,
            End | PageCrossing
                | Illegal
                | Jal
                | Jalr
                | Beq
                | Bne
                | Blt
                | Bge
                | Bltu
                | Bgeu
                | FenceI
                | Ecall
                | Ebreak
                | Sret
                | Wfi
                | SfenceVma
        )
    }

    /// Whether the operation compares two registers and jumps.
    pub fn is_branch(self) -> bool {
        use Op::*;
        matches!(self, Beq | Bne | Blt | Bge | Bltu | Bgeu)
    }
}
