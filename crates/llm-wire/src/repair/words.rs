//! What is said in the place of something that providers demand and a history does not have.

/// What a tool result says that has nothing in it; an empty one makes models repeat the call.
pub const NOTHING: &str = "(the tool returned nothing)";
/// What a user's turn of nothing says: it must be there, and must not be blank.
pub const EMPTY: &str = "(empty)";
/// What stands in front of a history that does not begin with the user.
pub const OPENING: &str = "Begin.";
/// What leads a system message in the middle of a conversation.
pub const OPERATOR_NOTE: &str =
    "(The next text is an instruction of the operator, not of the user.)";
