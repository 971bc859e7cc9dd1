package pdf

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
)

// The library's own copy of PDFium isn't compressed, so it would take 5.8 MB of the program, and not 2.6.
//
//go:generate sh -c "gzip -9nc $(go list -m -f '{{.Dir}}' github.com/klippa-app/go-pdfium)/webassembly/pdfium.wasm > pdfium.wasm.gz"
//go:embed pdfium.wasm.gz
var compressedPDFium []byte

// module returns PDFium as WebAssembly.
func module() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressedPDFium))
	if err != nil {
		return nil, fmt.Errorf("decompress PDFium: %w", err)
	}
	wasm, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("decompress PDFium: %w", err)
	}
	return wasm, nil
}
