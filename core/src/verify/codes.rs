//! The stable codes of [`VerifyError`](super::VerifyError)s. A code is never
//! reused for another meaning.

use crate::codes::code_table;

code_table! {
    /// A text range lies outside the text, or its bytes are not WTF-8.
    BAD_TEXT = "verify.bad_text" alias "A99-V0001";
    /// An index lies outside its table.
    BAD_INDEX = "verify.bad_index" alias "A99-V0002";
    /// A register lies outside the frame.
    BAD_REGISTER = "verify.bad_register" alias "A99-V0003";
    /// Operands contradict each other or the table they name.
    BAD_OPERANDS = "verify.bad_operands" alias "A99-V0004";
    /// Basic blocks do not cover the code, are too long, or do not begin with their own `Fuel`.
    BAD_BLOCKS = "verify.bad_blocks" alias "A99-V0005";
    /// A jump does not go to the first instruction of a block.
    BAD_JUMP = "verify.bad_jump" alias "A99-V0006";
    /// The code can run past its end.
    RUNS_OFF = "verify.runs_off" alias "A99-V0007";
    /// A price or charge is wrong.
    BAD_PRICE = "verify.bad_price" alias "A99-V0008";
    /// Steps are not properly nested or have impossible ranges.
    BAD_STEPS = "verify.bad_steps" alias "A99-V0009";
    /// A step can be entered without its charge.
    UNCHARGED_STEP = "verify.uncharged_step" alias "A99-V0010";
    /// Handlers are not properly nested, or a target is not a handler.
    BAD_HANDLERS = "verify.bad_handlers" alias "A99-V0011";
    /// A path reads a register before it is written.
    UNWRITTEN_REGISTER = "verify.unwritten_register" alias "A99-V0012";
    /// The steps of a literal take missing values, or do not leave exactly one.
    BAD_LITERAL = "verify.bad_literal" alias "A99-V0013";
    /// A shape names a key twice.
    DUPLICATE_KEY = "verify.duplicate_key" alias "A99-V0014";
    /// A source location lies outside the code, or locations are out of order.
    BAD_PLACE = "verify.bad_place" alias "A99-V0015";
    /// The program exceeds the compiler's limits.
    TOO_LARGE = "verify.too_large" alias "A99-V0016";
    /// Code can run without charge.
    UNCHARGED_CODE = "verify.uncharged_code" alias "A99-V0017";
}
