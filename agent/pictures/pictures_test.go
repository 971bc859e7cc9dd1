package pictures_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"parley/agent/pictures"
)

func drawing(width, height int) *image.RGBA {
	p := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			p.Set(x, y, color.RGBA{R: 200, G: 200, B: 200, A: 255})
		}
	}
	return p
}

func asPNG(t *testing.T, p image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(t *testing.T, p image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, p, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func fit(t *testing.T, raw []byte) pictures.Picture {
	t.Helper()
	p, err := pictures.New().Fit(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	shown, kind, err := image.DecodeConfig(bytes.NewReader(p.Data))
	if err != nil || "image/"+kind != p.Type || shown.Width != p.Width || shown.Height != p.Height {
		t.Fatalf("made %s of %dx%d, said to be %s of %dx%d, %v", kind, shown.Width, shown.Height, p.Type, p.Width, p.Height, err)
	}
	return p
}

func TestLargePicturesAreShrunk(t *testing.T) {
	for _, raw := range [][]byte{asPNG(t, drawing(4000, 1000)), asJPEG(t, drawing(4000, 1000))} {
		p := fit(t, raw)
		if p.Width != pictures.Side || p.Height != pictures.Side/4 {
			t.Errorf("a picture of 4000x1000 became %dx%d", p.Width, p.Height)
		}
	}
	if p := fit(t, asPNG(t, drawing(5000, 1))); p.Width != pictures.Side || p.Height != 1 {
		t.Errorf("a line became %dx%d", p.Width, p.Height)
	}
	if p := fit(t, asPNG(t, drawing(30, 20))); p.Width != 30 || p.Height != 20 || p.Type != "image/png" {
		t.Errorf("a small drawing became %s of %dx%d", p.Type, p.Width, p.Height)
	}
}

// A chunk that says nothing of the pixels, such as a colour profile, may be damaged: the picture is
// shown all the same. One that is cut off or damaged itself is none.
func TestADamagedProfileSpoilsNoPicture(t *testing.T) {
	chunk := func(name, content string, sum uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
		b = append(append(b, name...), content...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:])+sum)
	}
	palette := image.NewPaletted(image.Rect(0, 0, 30, 20), color.Palette{color.RGBA{R: 255, A: 255}, color.RGBA{}})
	for name, raw := range map[string][]byte{"colours": asPNG(t, drawing(30, 20)), "a palette": asPNG(t, palette)} {
		const ihdr = 8 + 25
		for what, extra := range map[string][]byte{
			"a profile with a wrong checksum": chunk("iCCP", "x\x00\x00nonsense", 1),
			"a profile of nonsense":           chunk("iCCP", "nonsense", 0),
			"a note with a wrong checksum":    chunk("tEXt", "Comment\x00hello", 7),
		} {
			spoilt := append(append(append([]byte{}, raw[:ihdr]...), extra...), raw[ihdr:]...)
			if p := fit(t, spoilt); p.Width != 30 || p.Height != 20 || p.Type != "image/png" {
				t.Errorf("%s with %s became %s of %dx%d", name, what, p.Type, p.Width, p.Height)
			}
			if _, err := pictures.New().Fit(t.Context(), spoilt[:ihdr+len(extra)-3]); !errors.Is(err, pictures.ErrNoPicture) {
				t.Errorf("%s, cut off within %s: %v", name, what, err)
			}
		}
		bad := bytes.Clone(raw)
		bad[len(bad)-20]++
		if _, err := pictures.New().Fit(t.Context(), bad); !errors.Is(err, pictures.ErrNoPicture) {
			t.Errorf("%s whose pixels are damaged: %v", name, err)
		}
	}
}

func TestWhatPNGWouldMakeLargeBecomesJPEG(t *testing.T) {
	noise := image.NewRGBA(image.Rect(0, 0, 900, 900))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise.Pix {
		noise.Pix[i] = byte(r.Uint32())
	}
	if p := fit(t, asPNG(t, noise)); p.Type != "image/jpeg" {
		t.Errorf("noise became %s of %d bytes", p.Type, len(p.Data))
	}
}

func TestTheFirstFrameOfAMovingPictureIsShown(t *testing.T) {
	frame := image.NewPaletted(image.Rect(0, 0, 40, 30), color.Palette{color.Black, color.White})
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{1, 1}}); err != nil {
		t.Fatal(err)
	}
	if p := fit(t, b.Bytes()); p.Width != 40 || p.Height != 30 {
		t.Errorf("became %dx%d", p.Width, p.Height)
	}
}

// A phone writes its photographs as the sensor lies, and says how to turn them.
func TestPhotographsStandUpright(t *testing.T) {
	for way := 1; way <= 8; way++ {
		raw := asJPEG(t, marked(way))
		exif := binary.BigEndian.AppendUint32([]byte("Exif\x00\x00MM\x00\x2a"), 8)
		exif = append(exif, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, byte(way), 0, 0)
		head := binary.BigEndian.AppendUint16([]byte{0xFF, 0xD8, 0xFF, 0xE1}, uint16(len(exif)+2))
		p := fit(t, append(append(head, exif...), raw[2:]...))
		shown, err := jpeg.Decode(bytes.NewReader(p.Data))
		if err != nil {
			t.Fatal(err)
		}
		if p.Width != 64 || p.Height != 32 || !isRed(shown.At(4, 4)) || isRed(shown.At(60, 4)) || isRed(shown.At(4, 28)) {
			t.Errorf("held the way %d it is %dx%d and not upright", way, p.Width, p.Height)
		}
	}
}

// marked is a picture of 64x32 with a red upper left corner, as a camera writes it that
// is held the given way.
func marked(way int) image.Image {
	isMark := func(x, y int) bool { return x < 16 && y < 16 }
	width, height := 64, 32
	if way > 4 {
		width, height = 32, 64
	}
	p := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			upX, upY := x, y
			switch way {
			case 2:
				upX = 63 - x
			case 3:
				upX, upY = 63-x, 31-y
			case 4:
				upY = 31 - y
			case 5:
				upX, upY = y, x
			case 6:
				upX, upY = 63-y, x
			case 7:
				upX, upY = 63-y, 31-x
			case 8:
				upX, upY = y, 31-x
			}
			p.Set(x, y, color.White)
			if isMark(upX, upY) {
				p.Set(x, y, color.RGBA{R: 255, A: 255})
			}
		}
	}
	return p
}

func isRed(c color.Color) bool {
	r, g, _, _ := c.RGBA()
	return r > 0x8000 && g < 0x6000
}

func TestWhatIsNoPictureIsRefused(t *testing.T) {
	whole := asPNG(t, drawing(100, 100))
	huge := bytes.Clone(whole) // its header says that it has 2^30 pixels
	binary.BigEndian.PutUint32(huge[16:], 1<<15)
	binary.BigEndian.PutUint32(huge[20:], 1<<15)
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"text":   {[]byte("hello"), pictures.ErrNoPicture},
		"empty":  {nil, pictures.ErrNoPicture},
		"cut":    {whole[:60], pictures.ErrNoPicture},
		"pdf":    {[]byte("%PDF-1.7"), pictures.ErrNoPicture},
		"head":   {[]byte("\xFF\xD8\xFF\xE1\xFF\xFF"), pictures.ErrNoPicture},
		"header": {withChecksum(huge), pictures.ErrTooLarge},
	} {
		if _, err := pictures.New().Fit(t.Context(), c.raw); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// withChecksum mends the checksum of a PNG's first chunk.
func withChecksum(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[29:], crc32.ChecksumIEEE(raw[12:29]))
	return raw
}

func FuzzFit(f *testing.F) {
	var small bytes.Buffer
	if err := png.Encode(&small, drawing(3, 3)); err != nil {
		f.Fatal(err)
	}
	f.Add(small.Bytes())
	f.Add([]byte("\xFF\xD8\xFF\xE1\x00\x20Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00"))
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPVP8 "))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := pictures.New().Fit(t.Context(), raw)
		if err == nil && max(p.Width, p.Height) > pictures.Side {
			t.Error(fmt.Sprint("made a picture of ", p.Width, "x", p.Height))
		}
	})
}
