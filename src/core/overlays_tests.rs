//! NodeOverlays.
