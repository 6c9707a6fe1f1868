//! The cache of decoded blocks.
