package seccomp

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

// legacyRules returns rules for the calls that only older architectures have: none here.
func legacyRules() []rule { return nil }

func legacySetIDRules() []rule { return nil }

// Chmod is a call that this architecture doesn't have.
const Chmod = -1
