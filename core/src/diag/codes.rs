//! Stable codes of findings about a program's text: errors and warnings (decision D44), and
//! mismatches between a program and a host's atoms. A code is never reused for another meaning.

use crate::codes::code_table;

code_table! {
    /// The text is not JSON.
    JSON_SYNTAX = "json.syntax" alias "A99-E0001";
    /// An object has the same key twice.
    DUPLICATE_KEY = "json.duplicate_key" alias "A99-E0002"
        help "remove one of the two members, or rename it";
    /// The JSON is nested too deeply.
    JSON_TOO_DEEP = "json.too_deep" alias "A99-E0003" help "nest the document less deeply";
    /// The document has too many bytes or values.
    JSON_TOO_LARGE = "json.too_large" alias "A99-E0004"
        help "split the document, or raise the limits with which it is read";
    /// The text is not UTF-8.
    NOT_UTF8 = "json.not_utf8" alias "A99-E0005" help "save the file as UTF-8";
    /// The root is not an object, or not a `seq`.
    BAD_ROOT = "compile.bad_root" alias "A99-E0101"
        help "a program is `{\"op\": \"seq\", \"steps\": [...]}`";
    /// Steps are nested too deeply.
    STEPS_TOO_DEEP = "compile.steps_too_deep" alias "A99-E0102"
        help "move inner parts into helpers or separate variables";
    /// Expression nodes are nested too deeply.
    EXPRESSION_TOO_DEEP = "compile.expression_too_deep" alias "A99-E0103"
        help "move inner parts into separate variables";
    /// A condition string is malformed.
    BAD_CONDITION = "compile.bad_condition" alias "A99-E0104";
    /// A forbidden name is bound.
    FORBIDDEN_NAME = "compile.forbidden_name" alias "A99-E0105"
        help "choose another name for this variable";
    /// The program is too large, or compiles to far more code than its text is long.
    TOO_LARGE = "compile.too_large" alias "A99-E0106"
        help "split the program, or load its data at run time";
    /// The caller of the compiler stopped it.
    STOPPED = "compile.stopped" alias "A99-E0107";
    /// A `break` or `continue` is outside a loop.
    NO_LOOP = "compile.no_loop"
        help "put it into the steps of a `forEach` or the body of a `while`";
    /// There are more findings than are shown, including errors.
    MORE_ERRORS = "compile.more_findings" alias "A99-E0199"
        help "correct those that are shown, then compile again";
    /// A builder's chain names a result before its first step (language section 4.13).
    NO_STEP = "builder.no_step" alias "A99-E0301" help "call `as_` after a step";
    /// A builder's step has an input with the name of a reserved key.
    INPUT_IS_KEY = "builder.input_is_key" alias "A99-E0302"
        help "choose another name for the input";
    /// A body made by a builder has `helpers` or `inputSchema`, which belong to the root
    /// (language section 1.1).
    MISPLACED_KEY = "builder.misplaced_key" alias "A99-E0303"
        help "give them to the program that the body is part of";
    /// The atom is not known.
    UNKNOWN_ATOM = "lint.unknown_atom" alias "A99-W0201"
        help "correct the name, or let the host add the atom";
    /// The expression tag or operator is not known.
    UNKNOWN_EXPRESSION = "lint.unknown_expression" alias "A99-W0202";
    /// The builtin or method is not known.
    UNKNOWN_FUNCTION = "lint.unknown_function" alias "A99-W0203"
        help "`docs/builtins.md` lists what can be called";
    /// A forbidden member is read.
    FORBIDDEN_MEMBER = "lint.forbidden_member" alias "A99-W0204"
        help "give the member another name; no program may read this one";
    /// A `then`, `body`, `steps` or step is missing or malformed.
    MALFORMED_STEP = "lint.malformed_step" alias "A99-W0205"
        help "write the steps as an array: `[{\"op\": ...}, ...]`";
    /// A body that binds no result may read an inherited one.
    INHERITED_RESULT = "lint.inherited_result" alias "A99-W0206"
        help "bind a step of the body to `result`, or rename the outer variable";
    /// A `mathCalc` expression is malformed.
    BAD_MATH = "lint.bad_math" alias "A99-W0207";
    /// A step can never be reached, because a `return`, `break` or `continue` precedes it.
    UNREACHABLE_STEP = "lint.unreachable_step" alias "A99-W0208"
        help "remove the step, or the one before it that leaves";
    /// A step has a key that its atom does not know.
    UNKNOWN_INPUT = "lint.unknown_input" help "correct the name, or remove the key";
    /// A step lacks an input that its atom needs.
    MISSING_INPUT = "lint.missing_input" help "add the input";
    /// A literal has a kind that the input does not accept.
    WRONG_KIND = "lint.wrong_kind" help "write a value of the kind that the input takes";
    /// A text is not one of the input's allowed values.
    WRONG_VALUE = "lint.wrong_value" help "use one of the values that the message lists";
    /// The host's atom cannot read a literal as the type of its input.
    WRONG_LITERAL = "lint.wrong_literal" help "write a value that the atom takes";
    /// The value of a step without other effects is bound to no name.
    DROPPED_RESULT = "lint.dropped_result" help "add a `result`, or remove the step";
    /// No step binds a name, and no argument or builtin has it.
    UNKNOWN_NAME = "lint.unknown_name" help "correct the name, or bind it before";
    /// A name exists, but is not visible at this place.
    NOT_VISIBLE = "lint.not_visible" help "hand it over: `vars`, or `args.` before its name";
    /// A text looks like code or a template, but is used as plain text.
    CODE_AS_TEXT = "lint.code_as_text" help "use `mathCalc`, `template` or an expression node";
    /// A text inside a literal or an expression equals the name of a variable.
    NAME_AS_TEXT = "lint.name_as_text" help "write `{\"$expr\": \"ident\", \"name\": ...}`";
    /// A variable that ends with its body hides an outer one.
    LOST_ASSIGNMENT = "lint.lost_assignment" help "carry the value with `reduce`, or use `while`";
    /// A `return` is in the body of `map`, `filter`, `find` or `reduce`.
    RETURN_IN_BODY = "lint.return_in_body" help "bind the item's value to `result`";
    /// A program, a helper or an expression node has an unknown key.
    UNKNOWN_FIELD = "lint.unknown_field" help "correct the name, or remove the key";
    /// An expression node lacks a field, or has a field of the wrong shape.
    MALFORMED_NODE = "lint.malformed_node"
        help "`docs/language.md` lists the nodes and their fields";
    /// An object is a node of another tree format.
    FOREIGN_NODE = "lint.foreign_node" help "write an expression node: `{\"$expr\": ...}`";
    /// A node is in an input that is taken literally.
    UNRESOLVED_NODE = "lint.unresolved_node" help "write the value itself";
    /// The version of the program does not exist.
    UNKNOWN_VERSION = "lint.unknown_version" help "write `\"a99\": 4`, or leave it out";
    /// A feature needs a later version than the program declares.
    NEEDS_VERSION = "lint.needs_version" help "write `\"a99\": 4` at the root";
    /// No step sets a property of the returned schema.
    UNSET_PROPERTY = "lint.unset_property" help "bind a step to a variable of this name";
    /// The number of arguments differs from the helper's parameters.
    HELPER_ARITY = "lint.helper_arity" help "give one argument for each of its `paramNames`";
    /// A regular expression is in a place where texts are compared literally.
    REGEX_AS_TEXT = "lint.regex_as_text" help "use the atom `regexMatch`";
    /// The body of a loop never changes its condition.
    ENDLESS_LOOP = "lint.endless_loop"
        help "set a variable in the body that the condition asks for";
    /// Only later steps bind a variable.
    USED_BEFORE_SET = "lint.used_before_set" help "bind it in a step before this one";
    /// A value is overwritten before any step reads it.
    OVERWRITTEN_VALUE = "lint.overwritten_value"
        help "use the first value, or remove the step that binds it";
    /// A program binds variables and returns nothing.
    NO_RESULT = "lint.no_result"
        help "end with `return` and a `schema` that names variables, or a `value`";
    /// A body binds no `result`, although its result is used.
    MISSING_RESULT = "lint.missing_result" help "bind a step of the body to `result`";
    /// A condition, or a part of one, is always the same.
    CONSTANT_CONDITION = "lint.constant_condition"
        help "compare a variable with what it may be";
    /// A step for each item does not use the item.
    UNUSED_ITEM = "lint.unused_item" help "use the name that `as` gives to the item";
    /// A calculation does not give a number.
    BAD_ARITHMETIC = "lint.bad_arithmetic" help "divide by another number than 0";
    /// A schema checks less than it seems to.
    MALFORMED_SCHEMA = "lint.malformed_schema"
        help "write `{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}}}`";
    /// A regular expression is invalid.
    BAD_PATTERN = "lint.bad_pattern" help "correct the pattern; write `\\\\` for a backslash in JSON";
    /// A constant is set again.
    CONSTANT_REASSIGNED = "lint.constant_reassigned"
        help "use `varSet` for a variable that changes";
    /// A path or an expression cannot refer to this name.
    ODD_NAME = "lint.odd_name" help "bind a name of letters, digits and `_`";
    /// A branch, loop or body does nothing, or repeats an earlier one.
    REPEATED_BRANCH = "lint.repeated_branch" help "correct the condition, or remove the branch";
    /// The value does not have the member or method.
    UNKNOWN_MEMBER = "lint.unknown_member" help "ask for a member that it has";
    /// A builtin ignores an argument, misses one or cannot use one.
    WRONG_ARGUMENTS = "lint.wrong_arguments" help "give it the arguments that it takes";
    /// A name is bound and never used.
    UNUSED_NAME = "lint.unused_name" help "use it, or remove what binds it";
    /// There are more findings than are shown.
    MORE_WARNINGS = "lint.more_findings" alias "A99-W0299"
        help "correct those that are shown, then compile again";
    /// A host registered two atoms with one name.
    DUPLICATE_ATOM = "link.duplicate_atom" alias "A99-W0401"
        help "register one of them only, or add atoms with `AtomSet::try_with`";
    /// The program needs an atom that the host does not grant.
    MISSING_ATOM = "link.missing_atom" alias "A99-L0001"
        help "grant the atom, or run the program where it is granted";
    /// The host's atom differs from the one that the program was compiled against.
    DIFFERENT_ATOM = "link.different_atom" alias "A99-L0002"
        help "its inputs, schemas or kind of price differ: compile the source again on this host";
    /// A call passes a wrong number of inputs to its atom.
    WRONG_INPUTS = "link.wrong_inputs" alias "A99-L0003"
        help "no compiler makes such a program: compile it again from a source you trust";
    /// At the host's prices some of the program would run without charge.
    FREE_CODE = "link.free_code" alias "A99-L0004"
        help "give the atoms that the program calls a price, or compile it on this host";
}
