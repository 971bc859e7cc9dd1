package consoletest

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// OpenPTY opens a pseudoterminal of the given size. A person types and reads at front; a program reads and writes
// at back. The caller closes both.
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
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlock, syscall.TIOCGPTN: &number} {
		if err = control(front, request, unsafe.Pointer(value)); err != nil {
			return nil, nil, err
		}
	}
	if err = ResizePTY(front, width, height); err != nil {
		return nil, nil, err
	}
	back, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return front, back, err
}

// ResizePTY changes the size of a pseudoterminal.
func ResizePTY(front *os.File, width, height int) error {
	size := [4]uint16{uint16(height), uint16(width)} //nolint:gosec // no terminal is that large
	return control(front, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

// control makes a control call for a terminal. It leaves the file in its mode, so that closing the file ends a
// read.
func control(f *os.File, request uintptr, value unsafe.Pointer) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := syscall.Errno(0)
	err = conn.Control(func(fd uintptr) {
		_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(value))
	})
	if err == nil && failed != 0 {
		err = fmt.Errorf("control a pseudo terminal: %w", failed)
	}
	return err
}
