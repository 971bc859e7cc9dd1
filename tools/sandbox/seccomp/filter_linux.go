//go:build linux && (amd64 || arm64)

package seccomp

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// The offsets of the fields in struct seccomp_data, which describes a system call to a filter.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
)

// A filter's answers to a system call: let it run, ask the process that holds the filter's listener, or make it
// fail with an error number.
const (
	allow  = 0x7fff0000
	notify = 0x7fc00000
	refuse = 0x00050000
)

// errnoAnswer returns the answer that makes a call fail with an error number.
func errnoAnswer(e unix.Errno) uint32 { return refuse | uint32(e) }

// A rule says how to answer system calls with this number; if test is set, it applies only to calls that the test
// matches.
type rule struct {
	call   uint32
	answer uint32
	test   test
}

// A test is a part of a filter: for a call that it matches, the filter continues with the instruction after the
// test, which is the rule's answer; for any other call it skips that instruction.
type test []unix.SockFilter

// load returns the instruction that loads the word at an offset in struct seccomp_data.
func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// jump returns the instruction that compares the loaded word with k. The argument yes is how many instructions it
// skips if they match, and no how many it skips if not.
func jump(how uint16, k uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, Jt: uint8(yes), Jf: uint8(no), K: k}
}

// answer returns the instruction that ends the filter with this answer.
func answer(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

// lowHalf and highHalf return the offsets of the two halves of argument n in struct seccomp_data.
func lowHalf(n uint32) uint32  { return atArgs + 8*n }
func highHalf(n uint32) uint32 { return atArgs + 8*n + 4 }

// notZero matches calls whose argument n is not 0.
func notZero(n uint32) test {
	return test{load(lowHalf(n)), jump(unix.BPF_JEQ, 0, 0, 2), load(highHalf(n)), jump(unix.BPF_JEQ, 0, 1, 0)}
}

// hasAnyFlag matches calls whose argument n has one of the flags.
func hasAnyFlag(n, flags uint32) test {
	return test{load(lowHalf(n)), jump(unix.BPF_JSET, flags, 0, 1)}
}

// hasFlagsOfBoth matches calls whose argument n has one of the flags, and whose argument m has one of the others.
func hasFlagsOfBoth(n, flags, m, others uint32) test {
	second := hasAnyFlag(m, others)
	return append(test{load(lowHalf(n)), jump(unix.BPF_JSET, flags, 0, len(second)+1)}, second...)
}

// isNoneOf matches calls whose argument n, without the bits of mask, is none of the
// values.
func isNoneOf(n, mask uint32, values ...uint32) test {
	t := test{load(lowHalf(n)), {Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: ^mask}}
	for i, v := range values {
		t = append(t, jump(unix.BPF_JEQ, v, len(values)-i, 0))
	}
	return t
}

// isOneOf matches calls whose argument n is one of the values.
func isOneOf(n uint32, values ...uint32) test {
	t := test{load(lowHalf(n))}
	for i, v := range values {
		t = append(t, jump(unix.BPF_JEQ, v, len(values)-i, 0))
	}
	return append(t, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: 1})
}

// Assemble makes the program of a filter in the form that the kernel and bubblewrap read.
func Assemble(f Filter) ([]byte, error) {
	var raw []byte
	for _, in := range Program(f) {
		raw = binary.NativeEndian.AppendUint16(raw, in.Code)
		raw = append(raw, in.Jt, in.Jf)
		raw = binary.NativeEndian.AppendUint32(raw, in.K)
	}
	return raw, nil
}

// Program returns the instructions of a filter.
func Program(f Filter) []unix.SockFilter {
	program := []unix.SockFilter{
		load(atArch), jump(unix.BPF_JEQ, arch, 1, 0), answer(errnoAnswer(unix.ENOSYS)), // calls of other architectures have other numbers
		load(atNumber), jump(unix.BPF_JGE, 0x40000000, 0, 1), answer(errnoAnswer(unix.ENOSYS)), // likewise
	}
	rules := hardenedRules()
	switch f {
	case Closed:
		rules = slices.Concat(closedRules(), rules)
	case Bare:
		rules = slices.Concat(ringRules(), setIDRules())
	}
	for _, r := range rules {
		program = append(program, load(atNumber), jump(unix.BPF_JEQ, r.call, 0, len(r.test)+1))
		program = append(program, r.test...)
		program = append(program, answer(r.answer))
	}
	return append(program, answer(allow))
}

// answerAll returns a rule with this answer for each of the calls.
func answerAll(answer uint32, calls ...uint32) (rules []rule) {
	for _, call := range calls {
		rules = append(rules, rule{call: call, answer: answer})
	}
	return rules
}

// hardenedRules refuse system calls that no command needs and that were used to attack kernels, that take memory
// that no limit counts, or that reach networks that belong to no namespace.
func hardenedRules() []rule {
	missing := errnoAnswer(unix.ENOSYS)
	rules := answerAll(missing,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_KEXEC_LOAD, unix.SYS_FANOTIFY_INIT)
	rules = append(rules, rule{unix.SYS_SOCKET, errnoAnswer(unix.EAFNOSUPPORT),
		isNoneOf(0, 0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)})
	return slices.Concat(ringRules(), rules, setIDRules())
}

// ringRules refuse io_uring: its operations are not system calls of their own, so no rule would see them.
func ringRules() []rule {
	return answerAll(errnoAnswer(unix.ENOSYS), unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER)
}

// setIDs are the bits of a file's mode that let others run the file with the rights of its owner or group.
const setIDs = unix.S_ISUID | unix.S_ISGID

// makesFile are the flags of an open call that create a file, so that the call's mode counts.
const makesFile = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// setIDRules refuse calls that set one of the bits setIDs on a file: a workspace outlives its commands, and outside
// the sandbox these bits take effect. A filter cannot read the mode that is passed to openat2, which programs can
// do without.
func setIDRules() []rule {
	denied := errnoAnswer(unix.EPERM)
	return append([]rule{
		{unix.SYS_FCHMOD, denied, hasAnyFlag(1, setIDs)},
		{unix.SYS_FCHMODAT, denied, hasAnyFlag(2, setIDs)},
		{unix.SYS_FCHMODAT2, denied, hasAnyFlag(2, setIDs)},
		{unix.SYS_MKNODAT, denied, hasAnyFlag(2, setIDs)},
		{unix.SYS_OPENAT, denied, hasFlagsOfBoth(2, makesFile, 3, setIDs)},
		{unix.SYS_OPENAT2, errnoAnswer(unix.ENOSYS), nil},
	}, legacySetIDRules()...)
}

// closedRules refuse system calls that lead to other processes of the same user or to any network. They ignore the
// paths that calls name, because a filter cannot read them. Calls that can change an open file that isn't open for
// writing are refused, too, or left to the judge in package supervisor, because Landlock lets the command open
// files that it may only read.
func closedRules() []rule {
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	denied, missing := errnoAnswer(unix.EPERM), errnoAnswer(unix.ENOSYS)
	rules := slices.Concat(
		answerAll(denied, unix.SYS_SOCKET, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_FCHOWNAT, unix.SYS_FCHOWN, unix.SYS_MOUNT, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT),
		answerAll(missing, unix.SYS_CLONE3, unix.SYS_SEMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN, unix.SYS_INOTIFY_INIT1),
		answerAll(errnoAnswer(unix.ENOTSUP), unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FSETXATTR, unix.SYS_FREMOVEXATTR, setxattrat, removexattrat),
		answerAll(notify, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_UTIMENSAT),
		legacyRules(),
	)
	return append(rules,
		rule{unix.SYS_IOCTL, denied, isOneOf(1, unix.FS_IOC_SETFLAGS, setFlags32, setFSXattr)},
		rule{unix.SYS_CLONE, denied, hasAnyFlag(0, namespaces)},
		rule{unix.SYS_SOCKETPAIR, denied, isNoneOf(0, 0, unix.AF_UNIX)},
		// A pair of datagram sockets could be connected to any socket that has a path.
		rule{unix.SYS_SOCKETPAIR, denied, isNoneOf(1, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.SOCK_STREAM, unix.SOCK_SEQPACKET)},
		rule{unix.SYS_PRLIMIT64, denied, notZero(0)},
		rule{unix.SYS_SCHED_SETAFFINITY, denied, notZero(0)},
		rule{unix.SYS_SCHED_SETSCHEDULER, denied, notZero(0)},
		rule{unix.SYS_SCHED_SETPARAM, denied, notZero(0)},
		rule{unix.SYS_SCHED_SETATTR, denied, notZero(0)},
		rule{unix.SYS_SETPRIORITY, denied, notZero(1)},
		rule{unix.SYS_IOPRIO_SET, denied, notZero(1)},
	)
}

// The numbers of the ioctl operations that set a file's attributes, including those for 32-bit programs.
const (
	setFlags32 = 0x40046602
	setFSXattr = 0x401c5820
)

// Calls that the library doesn't name yet; their numbers are the same on all architectures.
const (
	setxattrat    = 463
	removexattrat = 466
)
