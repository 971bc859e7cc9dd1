package seccomp

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// Chmod is a call that newer kinds of processors have no more.
const Chmod = unix.SYS_CHMOD

// legacy are the calls that only this kind of processor still has.
func legacy() []rule {
	return append(append(answerAll(errnoAnswer(unix.EPERM), unix.SYS_CHOWN, unix.SYS_LCHOWN), answerAll(notify, Chmod)...),
		answerAll(errnoAnswer(unix.ENOSYS), unix.SYS_INOTIFY_INIT, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT)...)
}
