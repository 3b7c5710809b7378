//! What would be bought.
