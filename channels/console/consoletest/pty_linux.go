package consoletest

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// OpenPTY opens a pseudo terminal of that size. A person types at front and reads there; a program reads
// and writes at back. The caller closes both.
func OpenPTY(width, height int) (front, back *os.File, err error) {
	front, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = front.Close() // nobody has it yet
		}
	}()
	var unlock, number int32
	size := [4]uint16{uint16(height), uint16(width)} //nolint:gosec // no terminal is that large
	for _, c := range []struct {
		request uintptr
		value   unsafe.Pointer
	}{{syscall.TIOCSPTLCK, unsafe.Pointer(&unlock)}, {syscall.TIOCGPTN, unsafe.Pointer(&number)}, {syscall.TIOCSWINSZ, unsafe.Pointer(&size)}} {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, front.Fd(), c.request, uintptr(c.value)); e != 0 {
			return nil, nil, fmt.Errorf("set up a pseudo terminal: %w", e)
		}
	}
	back, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return front, back, err
}
