package seccomp

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

// legacy are the calls that only older kinds of processors have.
func legacy() []rule { return nil }

// Chmod is a call that this kind of processor does not have.
const Chmod = -1
