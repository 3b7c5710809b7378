//! Catalogues of classes.
