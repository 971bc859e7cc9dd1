// Package documentstest writes small documents for tests.
//
// pdf.go writes PDF files, and office.go archives of XML.
package documentstest

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
)

// A PDF is a PDF file that is being written.
type PDF struct {
	objects [][]byte
	root    int // the number of the catalog; 0 stands for the last object
	// Compressed puts the objects into object streams, and their offsets into a stream, too, as
	// newer programs do.
	Compressed bool
	// Password, if not nil, is needed to open the file; everybody can open one with an empty
	// password.
	Password *string
	// Lost makes the file state a wrong offset of its table of objects.
	Lost bool
}

// Pages returns a PDF with one page for each text, in the letters of Windows-1252.
func Pages(texts ...string) *PDF {
	p := &PDF{}
	font := p.Add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	contents := make([]string, len(texts))
	for i, text := range texts {
		contents[i] = Lines(text)
	}
	p.tree(font, contents)
	return p
}

// Chinese returns a file with one page whose font identifies characters by number only, and with
// a table that maps the numbers to characters.
func Chinese(text string) *PDF {
	p := &PDF{}
	units := utf16.Encode([]rune(text))
	var table, shown strings.Builder
	fmt.Fprintf(&table, "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def 1 begincodespacerange <0000> <FFFF> endcodespacerange\n%d beginbfchar\n", len(units))
	for i, unit := range units {
		fmt.Fprintf(&table, "<%04X> <%04X>\n", i+1, unit)
		fmt.Fprintf(&shown, "%04X", i+1)
	}
	table.WriteString("endbfchar endcmap CMapName currentdict /CMap defineresource pop end end")
	unicode := p.Stream("", []byte(table.String()))
	descriptor := p.Add("<</Type/FontDescriptor/FontName/X/Flags 4/FontBBox[0 0 1000 1000]/ItalicAngle 0/Ascent 800/Descent -200/CapHeight 700/StemV 80>>")
	cid := p.Add(fmt.Sprintf("<</Type/Font/Subtype/CIDFontType2/BaseFont/X/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/FontDescriptor %d 0 R/DW 1000>>", descriptor))
	font := p.Add(fmt.Sprintf("<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[%d 0 R]/ToUnicode %d 0 R>>", cid, unicode))
	p.tree(font, []string{"BT /F1 12 Tf 40 700 Td <" + shown.String() + "> Tj ET"})
	return p
}

// Japanese returns a file with one page whose text is in a charset that readers have to know.
func Japanese(shiftJIS []byte) *PDF {
	p := &PDF{}
	descriptor := p.Add("<</Type/FontDescriptor/FontName/Y/Flags 4/FontBBox[0 0 1000 1000]/ItalicAngle 0/Ascent 800/Descent -200/CapHeight 700/StemV 80>>")
	cid := p.Add(fmt.Sprintf("<</Type/Font/Subtype/CIDFontType0/BaseFont/Y/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>/FontDescriptor %d 0 R/DW 1000>>", descriptor))
	font := p.Add(fmt.Sprintf("<</Type/Font/Subtype/Type0/BaseFont/Y/Encoding/90ms-RKSJ-H/DescendantFonts[%d 0 R]>>", cid))
	p.tree(font, []string{fmt.Sprintf("BT /F1 12 Tf 40 700 Td <%X> Tj ET", shiftJIS)})
	return p
}

// Lines returns the operators of PDF that draw lines of Latin text.
func Lines(text string) string {
	var out strings.Builder
	out.WriteString("BT /F1 10 Tf 40 800 Td 12 TL\n")
	for line := range strings.SplitSeq(text, "\n") {
		latin := make([]byte, 0, len(line))
		for _, r := range line {
			if strings.ContainsRune(`()\`, r) {
				latin = append(latin, '\\')
			}
			latin = append(latin, byte(r))
		}
		fmt.Fprintf(&out, "(%s) Tj T*\n", latin)
	}
	return out.String() + "ET"
}

// Add adds an object and returns its number.
func (p *PDF) Add(object string) int {
	p.objects = append(p.objects, []byte(object))
	return len(p.objects)
}

// Stream adds an object that holds content, compressed, and returns its number; more are further
// entries of the object's dictionary.
func (p *PDF) Stream(more string, content []byte) int {
	packed := deflate(content)
	return p.Add(fmt.Sprintf("<</Filter/FlateDecode/Length %d%s>>stream\n%s\nendstream", len(packed), more, packed))
}

func deflate(content []byte) []byte {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write(content); err != nil {
		panic(err) // it is memory
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return packed.Bytes()
}

// tree adds pages with these contents, and the catalog.
func (p *PDF) tree(font int, contents []string) {
	root := len(p.objects) + 2*len(contents) + 1
	kids := make([]string, 0, len(contents))
	for _, content := range contents {
		stream := p.Stream("", []byte(content))
		page := p.Add(fmt.Sprintf("<</Type/Page/Parent %d 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 %d 0 R>>>>/Contents %d 0 R>>", root, font, stream))
		kids = append(kids, fmt.Sprintf("%d 0 R", page))
	}
	p.Add(fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", len(kids), strings.Join(kids, " ")))
	p.root = p.Add(fmt.Sprintf("<</Type/Catalog/Pages %d 0 R>>", root))
}

// Bytes returns the content of the file.
func (p *PDF) Bytes() []byte {
	if p.Password != nil {
		return p.encrypted()
	}
	if p.Compressed {
		return p.compressed()
	}
	return p.encodeWithTable(p.objects, "")
}

// encodeWithTable returns the file with a cross-reference table that is not compressed. The trailer
// gets these additions.
func (p *PDF) encodeWithTable(objects [][]byte, trailer string) []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	places := make([]int, 0, len(objects))
	for i, object := range objects {
		places = append(places, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	at := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, place := range places {
		if p.Lost {
			place += 1000
		}
		fmt.Fprintf(&out, "%010d 00000 n \n", place)
	}
	if p.Lost {
		at += 100000
	}
	fmt.Fprintf(&out, "trailer\n<</Size %d/Root %d 0 R%s>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, cmp.Or(p.root, len(p.objects)), trailer, at)
	return out.Bytes()
}

// compressed returns the file with its objects, and their offsets, in compressed streams.
func (p *PDF) compressed() []byte {
	var out, heads, bodies bytes.Buffer
	out.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	type place struct {
		kind   byte
		where  int
		within int
	}
	places := make([]place, len(p.objects)+3)
	holder, table := len(p.objects)+1, len(p.objects)+2
	count := 0
	for i, object := range p.objects {
		if bytes.HasSuffix(object, []byte("endstream")) {
			places[i+1] = place{1, out.Len(), 0}
			fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, object)
			continue
		}
		places[i+1] = place{2, holder, count}
		fmt.Fprintf(&heads, "%d %d ", i+1, bodies.Len())
		bodies.Write(object)
		bodies.WriteByte('\n')
		count++
	}
	packed := deflate(append(heads.Bytes(), bodies.Bytes()...))
	places[holder] = place{1, out.Len(), 0}
	fmt.Fprintf(&out, "%d 0 obj\n<</Type/ObjStm/N %d/First %d/Filter/FlateDecode/Length %d>>stream\n%s\nendstream\nendobj\n", holder, count, heads.Len(), len(packed), packed)
	at := out.Len()
	places[table] = place{1, at, 0}
	var rows []byte
	for _, place := range places {
		rows = append(rows, place.kind)
		rows = binary.BigEndian.AppendUint32(rows, uint32(place.where))
		rows = binary.BigEndian.AppendUint16(rows, uint16(place.within))
	}
	packed = deflate(rows)
	fmt.Fprintf(&out, "%d 0 obj\n<</Type/XRef/Size %d/W[1 4 2]/Root %d 0 R/Filter/FlateDecode/Length %d>>stream\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n",
		table, len(places), cmp.Or(p.root, len(p.objects)), len(packed), packed, at)
	return out.Bytes()
}

// encrypted returns the file encrypted with RC4 of 128 bits.
func (p *PDF) encrypted() []byte {
	pad := []byte("\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A")
	padded := append([]byte(*p.Password), pad...)[:32]
	id := []byte("0123456789abcdef")
	hash := md5.Sum(padded)
	for range 50 {
		hash = md5.Sum(hash[:])
	}
	owner := rc4Repeated(hash[:], padded)
	const permissions = -4
	begin := append(append([]byte{}, padded...), owner...)
	begin = binary.LittleEndian.AppendUint32(begin, uint32(0xFFFFFFFF+permissions+1))
	key := md5.Sum(append(begin, id...))
	for range 50 {
		key = md5.Sum(key[:])
	}
	check := md5.Sum(append(append([]byte{}, pad...), id...))
	user := append(rc4Repeated(key[:], check[:]), make([]byte, 16)...)

	objects := make([][]byte, len(p.objects))
	for i, object := range p.objects {
		objects[i] = object
		if from := bytes.Index(object, []byte("stream\n")); from >= 0 && bytes.HasSuffix(object, []byte("\nendstream")) {
			own := md5.Sum(append(append([]byte{}, key[:]...), byte(i+1), byte((i+1)>>8), byte((i+1)>>16), 0, 0))
			body := object[from+len("stream\n") : len(object)-len("\nendstream")]
			objects[i] = append(append(append([]byte{}, object[:from+len("stream\n")]...), rc4With(own[:], body)...), "\nendstream"...)
		}
	}
	return p.encodeWithTable(objects, fmt.Sprintf("/ID[<%x><%x>]/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P %d/O<%x>/U<%x>>>", id, id, permissions, owner, user))
}

// rc4With returns a text encrypted with a key.
func rc4With(key, text []byte) []byte {
	cipher, err := rc4.NewCipher(key)
	if err != nil {
		panic(err) // the key has 16 bytes
	}
	out := make([]byte, len(text))
	cipher.XORKeyStream(out, text)
	return out
}

// rc4Repeated returns a text encrypted with a key and nineteen keys derived from it.
func rc4Repeated(key, text []byte) []byte {
	for i := range 20 {
		next := make([]byte, len(key))
		for j := range key {
			next[j] = key[j] ^ byte(i)
		}
		text = rc4With(next, text)
	}
	return text
}
