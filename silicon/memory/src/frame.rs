use std::ptr::NonNull;

mod access {
    /// Stores in one piece, wherever the bytes are. A volatile store of a packed structure goes through memory of its
    /// own, which costs each of the interpreter's stores a stack frame: an instruction of the host does not.
    pub trait Store {
        /// # Safety
        /// `at` must be valid for a store of the whole word.
        unsafe fn store(self, at: *mut u8);
    }

    macro_rules! store {
        ($($t:ty, $class:ident, $instruction:literal;)*) => {$(
            impl Store for $t {
                #[inline(always)]
                unsafe fn store(self, at: *mut u8) {
                    #[cfg(all(target_arch = "x86_64", not(miri)))]
                    // SAFETY: one store of the word's size to `at`, which the caller answers for.
                    unsafe {
                        std::arch::asm!($instruction, at = in(reg) at, value = in($class) self,
                            options(nostack, preserves_flags));
                    }
                    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
                    // SAFETY: as above; the packed structure needs no alignment.
                    unsafe {
                        at.cast::<super::Unaligned<$t>>().write_volatile(super::Unaligned(self));
                    }
                }
            }
        )*};
    }
    store! {
        u8, reg_byte, "mov byte ptr [{at}], {value}";
        u16, reg, "mov word ptr [{at}], {value:x}";
        u32, reg, "mov dword ptr [{at}], {value:e}";
        u64, reg, "mov qword ptr [{at}], {value:r}";
    }

    impl Store for u128 {
        #[inline(always)]
        unsafe fn store(self, at: *mut u8) {
            // SAFETY: the caller answers for `at`; the packed structure needs no alignment.
            unsafe { at.cast::<super::Unaligned<u128>>().write_volatile(super::Unaligned(self)) }
        }
    }
}

/// An integer that the processor loads and stores in one piece.
pub trait Word: Copy + Eq + access::Store + 'static {
    /// Size in bytes.
    const BYTES: u64;
    /// The value zero-extended.
    fn to_u64(self) -> u64;
    /// The low bits of `value`.
    fn from_u64(value: u64) -> Self;
    /// The value zero-extended.
    fn to_u128(self) -> u128;
    /// The low bits of `value`.
    fn from_u128(value: u128) -> Self;
}

macro_rules! word {
    ($($t:ty),*) => {$(
        impl Word for $t {
            const BYTES: u64 = size_of::<$t>() as u64;
            #[inline(always)]
            fn to_u64(self) -> u64 { self as u64 }
            #[inline(always)]
            fn from_u64(value: u64) -> Self { value as $t }
            #[inline(always)]
            fn to_u128(self) -> u128 { self as u128 }
            #[inline(always)]
            fn from_u128(value: u128) -> Self { value as $t }
        }
    )*};
}
word!(u8, u16, u32, u64, u128);

/// One 4 KiB page of physical memory: the host address of its first byte.
///
/// Accesses are volatile: another thread or the VMM may touch the same bytes at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame(pub(crate) NonNull<u8>);

// SAFETY: a frame is an address of memory that outlives every user (see the crate's documentation); all accesses are
// volatile and no reference to the bytes is ever formed, so frames may be used from any thread.
unsafe impl Send for Frame {}
// SAFETY: as above.
unsafe impl Sync for Frame {}

#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Unaligned<T>(T);

impl Frame {
    /// A frame for table entries that are not in use: a page of zeroes which belongs to no bank.
    #[must_use]
    pub fn unused() -> Self {
        #[repr(align(4096))]
        struct Page(std::cell::UnsafeCell<[u8; 4096]>);
        // SAFETY: only accessed through volatile loads and stores of frames.
        unsafe impl Sync for Page {}
        static UNUSED: Page = Page(std::cell::UnsafeCell::new([0; 4096]));
        Self(NonNull::new(UNUSED.0.get().cast()).expect("a static has an address"))
    }

    /// Loads a word at `offset` (only its low 12 bits count).
    ///
    /// A word that would cross the end of the page is moved down to end there: callers split such accesses.
    #[inline(always)]
    #[must_use]
    pub fn load<T: Word>(self, offset: u64) -> T {
        let offset = Self::clamp::<T>(offset);
        // SAFETY: `clamp` keeps the access inside of the frame, which is mapped.
        unsafe { self.0.as_ptr().add(offset).cast::<Unaligned<T>>().read_volatile().0 }
    }

    /// Stores a word at `offset` (only its low 12 bits count), with the same rule at the end of the page.
    #[inline(always)]
    pub fn store<T: Word>(self, offset: u64, value: T) {
        let offset = Self::clamp::<T>(offset);
        // SAFETY: `clamp` keeps the access inside of the frame, which is mapped.
        unsafe { value.store(self.0.as_ptr().add(offset)) }
    }

    /// Copies bytes out of the frame; `out` must fit between `offset` and the end of the page.
    pub fn read(self, offset: usize, out: &mut [u8]) {
        assert!(offset <= 4096 && out.len() <= 4096 - offset, "read crosses the end of a frame");
        // SAFETY: the range was checked; `out` is a distinct Rust object.
        unsafe { std::ptr::copy(self.0.as_ptr().add(offset), out.as_mut_ptr(), out.len()) }
    }

    /// Copies bytes into the frame; `data` must fit between `offset` and the end of the page.
    pub fn write(self, offset: usize, data: &[u8]) {
        assert!(offset <= 4096 && data.len() <= 4096 - offset, "write crosses the end of a frame");
        // SAFETY: the range was checked; `data` is a distinct Rust object.
        unsafe { std::ptr::copy(data.as_ptr(), self.0.as_ptr().add(offset), data.len()) }
    }

    /// Copies `len` bytes between frames with the semantics of a forward byte loop where the ranges do not overlap,
    /// and of `memmove` where they do: callers that need the overlapping loop must not use it.
    pub fn copy_from(self, offset: usize, source: Frame, source_offset: usize, len: usize) {
        assert!(offset <= 4096 && len <= 4096 - offset, "copy crosses the end of a frame");
        assert!(source_offset <= 4096 && len <= 4096 - source_offset, "copy crosses the end of a frame");
        // SAFETY: both ranges were checked; `ptr::copy` allows overlap.
        unsafe { std::ptr::copy(source.0.as_ptr().add(source_offset), self.0.as_ptr().add(offset), len) }
    }

    /// Fills `len` bytes from `offset` with `value`.
    pub fn fill(self, offset: usize, len: usize, value: u8) {
        assert!(offset <= 4096 && len <= 4096 - offset, "fill crosses the end of a frame");
        // SAFETY: the range was checked.
        unsafe { std::ptr::write_bytes(self.0.as_ptr().add(offset), value, len) }
    }

    #[inline(always)]
    fn clamp<T: Word>(offset: u64) -> usize {
        let offset = offset & 0xfff;
        let last = 4096 - T::BYTES;
        (if offset > last { last } else { offset }) as usize
    }
}
