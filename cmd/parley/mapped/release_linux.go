package mapped

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// release unmaps all pages of a file from this process that nobody can have changed: the system
// maps each anew once it is read. The file is the one to which link leads.
func release(link string) error {
	file, err := os.Readlink(link)
	if err != nil {
		return fmt.Errorf("find the file: %w", err)
	}
	raw, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("read what is mapped: %w", err)
	}
	var failed []error
	for _, r := range unchanged(bytes.NewReader(raw), file) {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, r.from, r.to-r.from, syscall.MADV_DONTNEED); errno != 0 {
			failed = append(failed, fmt.Errorf("release %x-%x: %w", r.from, r.to, errno))
		}
	}
	return errors.Join(failed...)
}

// A region is a part of the address space.
type region struct{ from, to uintptr }

// unchanged returns the regions in which a file is mapped, cannot be written, and has no page that
// differs from the file: what the loader has written before it forbade to write must stay. smaps is
// what proc_pid_smaps(5) describes: for each region a line with its addresses, its rights and its
// file, and then a line for each of its sizes.
func unchanged(smaps io.Reader, file string) []region {
	var found []region
	var now region
	isOfFile := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		if from, to, rest, ok := parseRegion(line); ok {
			rights, _, _ := strings.Cut(rest, " ")
			now, isOfFile = region{from, to}, strings.HasPrefix(rights, "r-") && strings.HasSuffix(line, " "+file)
			continue
		}
		if size, ok := strings.CutPrefix(line, "Anonymous:"); ok && isOfFile && strings.TrimSpace(size) == "0 kB" {
			found = append(found, now)
		}
	}
	return found
}

// parseRegion reads the first line of a region; it returns false for other lines.
func parseRegion(line string) (from, to uintptr, rest string, ok bool) {
	addresses, rest, _ := strings.Cut(line, " ")
	first, last, ok := strings.Cut(addresses, "-")
	if !ok {
		return 0, 0, "", false
	}
	a, err := strconv.ParseUint(first, 16, 64)
	b, err2 := strconv.ParseUint(last, 16, 64)
	return uintptr(a), uintptr(b), rest, err == nil && err2 == nil
}
