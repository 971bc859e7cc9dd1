package pdf

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever updates the library has to compress its PDFium again: its functions and those of the module belong together.
func TestTheModuleIsTheLibrarys(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/klippa-app/go-pdfium").Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "webassembly", "pdfium.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := module()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("pdfium.wasm.gz is another PDFium than the library's: run go generate ./tools/documents/pdf")
	}
}
