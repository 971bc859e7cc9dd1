package documentstest

import (
	"archive/zip"
	"bytes"
	"strings"
)

// Names of the XML namespaces that parts of office files use.
const (
	Word    = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
	Sheet   = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	Slide   = "http://schemas.openxmlformats.org/presentationml/2006/main"
	Drawing = "http://schemas.openxmlformats.org/drawingml/2006/main"
	Related = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
)

// Archive packs parts into a ZIP file; names and contents alternate.
func Archive(parts ...string) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i+1 < len(parts); i += 2 {
		w, err := z.Create(parts[i])
		if err == nil {
			_, err = w.Write([]byte(parts[i+1]))
		}
		if err != nil {
			panic(err) // it is memory
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// Relations returns the XML part that lists what another part refers to; ids, kinds and targets
// alternate. A target that begins with a scheme, such as https:, is outside of the file.
func Relations(all ...string) string {
	var out strings.Builder
	out.WriteString(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`)
	for i := 0; i+2 < len(all); i += 3 {
		out.WriteString(`<Relationship Id="` + all[i] + `" Type="` + Related + "/" + all[i+1] + `" Target="` + all[i+2] + `"`)
		if strings.Contains(all[i+2], "://") {
			out.WriteString(` TargetMode="External"`)
		}
		out.WriteString("/>")
	}
	return out.String() + "</Relationships>"
}

// DOCX returns a document with this XML as its body; more holds names and contents of further
// parts in turn.
func DOCX(body string, more ...string) []byte {
	return Archive(append([]string{
		"_rels/.rels", Relations("r1", "officeDocument", "word/document.xml"),
		"word/document.xml", `<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="` + Word + `" xmlns:r="` + Related + `"><w:body>` + body + `</w:body></w:document>`,
	}, more...)...)
}

// XLSX returns a workbook with one sheet, whose rows are given as XML; more holds names and
// contents of further parts in turn.
func XLSX(rows string, more ...string) []byte {
	return Archive(append([]string{
		"_rels/.rels", Relations("r1", "officeDocument", "xl/workbook.xml"),
		"xl/_rels/workbook.xml.rels", Relations("r1", "worksheet", "worksheets/sheet1.xml", "r2", "sharedStrings", "sharedStrings.xml", "r3", "styles", "styles.xml", "r4", "worksheet", "/xl/worksheets/sheet2.xml"),
		"xl/workbook.xml", `<workbook xmlns="` + Sheet + `" xmlns:r="` + Related + `"><sheets><sheet name="Sales" sheetId="1" r:id="r1"/><sheet name="Old" sheetId="2" state="hidden" r:id="r4"/></sheets></workbook>`,
		"xl/worksheets/sheet1.xml", `<worksheet xmlns="` + Sheet + `"><sheetData>` + rows + `</sheetData></worksheet>`,
	}, more...)...)
}

// PPTX returns slides; each is given by the content of its tree of shapes. The names of the parts
// that hold slides do not tell their order.
func PPTX(slides ...string) []byte {
	relations := []string{}
	var list strings.Builder
	parts := []string{"_rels/.rels", Relations("r1", "officeDocument", "ppt/presentation.xml")}
	for i, slide := range slides {
		id, name := "s"+string(rune('a'+i)), "slides/slide"+string(rune('z'-i))+".xml"
		relations = append(relations, id, "slide", name)
		list.WriteString(`<p:sldId id="25` + string(rune('0'+i)) + `" r:id="` + id + `"/>`)
		parts = append(parts, "ppt/"+name, `<p:sld xmlns:p="`+Slide+`" xmlns:a="`+Drawing+`" xmlns:r="`+Related+`"><p:cSld><p:spTree>`+slide+`</p:spTree></p:cSld></p:sld>`)
	}
	return Archive(append(parts,
		"ppt/_rels/presentation.xml.rels", Relations(relations...),
		"ppt/presentation.xml", `<p:presentation xmlns:p="`+Slide+`" xmlns:r="`+Related+`"><p:sldIdLst>`+list.String()+`</p:sldIdLst></p:presentation>`,
		"ppt/slides/_rels/slidez.xml.rels", Relations("n1", "notesSlide", "../notesSlides/notes1.xml"),
		"ppt/notesSlides/notes1.xml", `<p:notes xmlns:p="`+Slide+`" xmlns:a="`+Drawing+`"><p:cSld><p:spTree>`+
			Shape("sldNum", "1")+Shape("body", "Say it slowly.")+`</p:spTree></p:cSld></p:notes>`)...)
}

// Shape returns the XML of a slide's shape with these lines as paragraphs. role is what the shape
// is for, such as title; "" stands for none.
func Shape(role string, lines ...string) string {
	if role != "" {
		role = `<p:ph type="` + role + `"/>`
	}
	var body strings.Builder
	for _, line := range lines {
		body.WriteString(`<a:p><a:r><a:t>` + line + `</a:t></a:r></a:p>`)
	}
	return `<p:sp><p:nvSpPr><p:cNvPr id="2" name="x"/><p:nvPr>` + role + `</p:nvPr></p:nvSpPr><p:txBody>` + body.String() + `</p:txBody></p:sp>`
}
