//! A logical processor as the hypervisor uses it.
