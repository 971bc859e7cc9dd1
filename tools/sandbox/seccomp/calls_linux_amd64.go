package seccomp

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// Chmod is the number of a system call that newer processor architectures don't have.
const Chmod = unix.SYS_CHMOD

// legacyRules returns rules for the calls that only this architecture still has.
func legacyRules() []rule {
	return append(append(answerAll(errnoAnswer(unix.EPERM), unix.SYS_CHOWN, unix.SYS_LCHOWN), answerAll(notify, Chmod)...),
		answerAll(errnoAnswer(unix.ENOSYS), unix.SYS_INOTIFY_INIT, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT)...)
}

// legacySetIDRules returns the setIDRules for those calls.
func legacySetIDRules() []rule {
	denied := errnoAnswer(unix.EPERM)
	return []rule{
		{unix.SYS_CHMOD, denied, hasAnyFlag(1, setIDs)},
		{unix.SYS_CREAT, denied, hasAnyFlag(1, setIDs)},
		{unix.SYS_MKNOD, denied, hasAnyFlag(1, setIDs)},
		{unix.SYS_OPEN, denied, hasFlagsOfBoth(1, makesFile, 2, setIDs)},
	}
}
