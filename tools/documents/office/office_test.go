package office_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/tools/documents/documentstest"
	"parley/tools/documents/office"
	"parley/tools/documents/pages"
	"parley/tools/testrace"
)

func TestMain(m *testing.M) { os.Exit(testrace.Run(m.Run)) }

// readPages returns all pages, each below its title.
func readPages(t *testing.T, content []byte) (text, note string) {
	t.Helper()
	d, err := office.Open(content)
	if err != nil {
		t.Fatal(err)
	}
	return allPages(t, d), d.Note()
}

func allPages(t *testing.T, d pages.Document) string {
	t.Helper()
	var out []string
	for n := 1; n <= d.Count(); n++ {
		page, err := d.Page(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimPrefix(page.Title+"\n"+page.Text, "\n"))
	}
	return strings.Join(out, "\f\n")
}

func wantSame(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("it reads\n%s\nnot\n%s", got, want)
	}
}

const wordParts = `<w:styles xmlns:w="` + documentstest.Word + `">
	<w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>
	<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="H2"/></w:style>
	<w:style w:styleId="H2"><w:name w:val="heading 2"/><w:pPr><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr></w:style>
	<w:style w:styleId="Item"><w:name w:val="Item"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style></w:styles>`

const wordLists = `<w:numbering xmlns:w="` + documentstest.Word + `">
	<w:abstractNum w:abstractNumId="10"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="·"/></w:lvl></w:abstractNum>
	<w:abstractNum w:abstractNumId="11"><w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
		<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>
	<w:abstractNum w:abstractNumId="12"><w:lvl w:ilvl="0"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1"/></w:lvl></w:abstractNum>
	<w:num w:numId="1"><w:abstractNumId w:val="10"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="11"/></w:num><w:num w:numId="3"><w:abstractNumId w:val="12"/></w:num></w:numbering>`

func paragraphXML(style, text string) string {
	return `<w:p><w:pPr><w:pStyle w:val="` + style + `"/></w:pPr><w:r><w:t xml:space="preserve">` + text + `</w:t></w:r></w:p>`
}

func listItemXML(list, level int, text string) string {
	return fmt.Sprintf(`<w:p><w:pPr><w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr></w:pPr><w:r><w:t>%s</w:t></w:r></w:p>`, level, list, text)
}

func TestWord(t *testing.T) {
	cell := func(text string) string { return `<w:tc>` + paragraphXML("", text) + `</w:tc>` }
	body := paragraphXML("H1", "Quarterly report") + paragraphXML("", "Sales &amp; costs were ") +
		`<w:p><w:r><w:t>a </w:t></w:r><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:r><w:tab/><w:t>tab</w:t><w:br/><w:t>line</w:t><w:footnoteReference w:id="2"/></w:r></w:p>` +
		paragraphXML("Mine", "Numbered heading") +
		listItemXML(2, 0, "three") + listItemXML(2, 1, "three a") + listItemXML(2, 1, "three b") + listItemXML(2, 0, "four") + listItemXML(2, 1, "four a") + paragraphXML("Item", "dot") +
		`<w:tbl><w:tblPr/><w:tr>` + cell("Name") + cell("Pipe | here") + `</w:tr><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>` + paragraphXML("", "one") + paragraphXML("", "two") + `</w:tc></w:tr></w:tbl>` +
		`<w:sdt><w:sdtPr><w:alias w:val="no"/></w:sdtPr><w:sdtContent>` + paragraphXML("", "in a control") + `</w:sdtContent></w:sdt>` +
		`<w:p><w:hyperlink r:id="r9"><w:r><w:t>the site</w:t></w:r></w:hyperlink><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>` +
		`<w:p><w:r><mc:AlternateContent xmlns:mc="mc"><mc:Choice><w:drawing><wp:docPr xmlns:wp="wp" descr="A chart of sales"/><wps:txbx xmlns:wps="wps"><w:txbxContent>` + paragraphXML("", "boxed") + `</w:txbxContent></wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict>` + paragraphXML("", "again") + `</w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>`
	got, note := readPages(t, documentstest.DOCX(body, "word/_rels/document.xml.rels", documentstest.Relations("r9", "hyperlink", "https://example.com/a"),
		"word/styles.xml", wordParts, "word/numbering.xml", wordLists,
		"word/footnotes.xml", `<w:footnotes xmlns:w="`+documentstest.Word+`"><w:footnote w:id="-1" w:type="separator">`+paragraphXML("", "-")+`</w:footnote><w:footnote w:id="2">`+paragraphXML("", "As audited.")+`</w:footnote></w:footnotes>`))
	wantSame(t, got, `# Quarterly report

Sales & costs were

a new	tab
line[^2]

## I Numbered heading

3. three
  3.a) three a
  3.b) three b
4. four
  4.a) four a
- dot

| Name | Pipe \| here |
|---|---|
| one / two |  |

in a control

[the site](https://example.com/a)

[image: A chart of sales]

boxed

[^2]: As audited.`)
	wantSame(t, note, "")
}

func TestWordInParts(t *testing.T) {
	var body strings.Builder
	for i := range 300 {
		body.WriteString(paragraphXML("", fmt.Sprintf("This is paragraph %d of a long document.", i)))
	}
	d, err := office.Open(documentstest.DOCX(body.String()))
	if err != nil {
		t.Fatal(err)
	}
	if d.Count() < 3 || d.Count() > 5 {
		t.Errorf("it has %d parts", d.Count())
	}
	if got := strings.Count(allPages(t, d), "of a long document."); got != 300 {
		t.Errorf("%d paragraphs are there", got)
	}
}

func TestSheets(t *testing.T) {
	styles := `<styleSheet xmlns="` + documentstest.Sheet + `"><numFmts><numFmt numFmtId="170" formatCode="dd\.mm\.yyyy&quot; h&quot;"/><numFmt numFmtId="171" formatCode="#,##0.00 [$€-407]"/><numFmt numFmtId="172" formatCode="[h]:mm"/></numFmts>
		<cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="10"/><xf numFmtId="170"/><xf numFmtId="171"/><xf numFmtId="22"/><xf numFmtId="172"/><xf numFmtId="20"/></cellXfs></styleSheet>`
	shared := `<sst xmlns="` + documentstest.Sheet + `"><si><t>Month</t></si><si><r><t>Rich </t></r><r><t>text</t></r><rPh><t>no</t></rPh></si></sst>`
	rows := `<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>
		<row r="3"><c r="A3" s="1"><v>45292</v></c><c r="B3"><f>SUM(B1:B2)</f><v>0.30000000000000004</v></c><c r="C3" s="2"><v>0.125</v></c><c r="D3" t="b"><v>1</v></c><c r="E3" t="e"><v>#DIV/0!</v></c></row>
		<row><c s="3"><v>1</v></c><c s="4"><v>1234.5</v></c><c s="5"><v>45292.75</v></c><c s="6"><v>1.5</v></c><c s="7"><v>0.25</v></c><c t="inlineStr"><is><t>a
b</t></is></c><c><f>NOW()</f></c><c t="s"><v>99</v></c><c t="str"><f>A1</f><v>Month</v></c></row>`
	got, note := readPages(t, documentstest.XLSX(rows, "xl/styles.xml", styles, "xl/sharedStrings.xml", shared,
		"xl/worksheets/sheet2.xml", `<worksheet xmlns="`+documentstest.Sheet+`"><sheetData/></worksheet>`))
	wantSame(t, got, `sheet "Sales", rows 1 to 4
|  | A | B | C | D | E | F | G | H | I |
|---|---|---|---|---|---|---|---|---|---|
| 1 | Month |  | Rich text |  |  |  |  |  |  |
| 3 | 2024-01-01 | 0.3 | 12.5% | TRUE | #DIV/0! |  |  |  |  |
| 4 | 1900-01-01 | 1234.5 | 2024-01-01 18:00:00 | 36:00:00 | 06:00:00 | a b | =NOW() |  | Month |`+"\f\n"+`sheet "Old", hidden`+"\n")
	wantSame(t, note, "")
}

func TestLongSheets(t *testing.T) {
	var rows strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&rows, `<row r="%d"><c r="A%d"><v>%d</v></c><c r="AB%d"><v>1</v></c></row>`, i+1, i+1, i+1, i+1)
	}
	d, err := office.Open(documentstest.XLSX(rows.String()))
	if err != nil {
		t.Fatal(err)
	}
	first, err := d.Page(1)
	if err != nil || first.Title != `sheet "Sales", rows 1 to 200` || !strings.Contains(first.Text, " | AB |\n") || !strings.HasSuffix(first.Text, "| 200 | 200 |"+strings.Repeat("  |", 26)+" 1 |") {
		t.Errorf("it begins with %q %.300s, %v", first.Title, first.Text, err)
	}
	if d.Count() != 6 { // five, and the sheet that is missing
		t.Errorf("it has %d parts", d.Count())
	}
}

func TestSlides(t *testing.T) {
	shape := documentstest.Shape
	first := shape("", "first", "second") + shape("title", "The title") + shape("ftr", "footer") +
		`<p:pic><p:nvPicPr><p:cNvPr id="4" name="x" descr="A logo"/></p:nvPicPr></p:pic>` +
		`<p:grpSp>` + shape("", "in a group") + `</p:grpSp>` +
		`<p:sp><p:txBody><a:p><a:pPr lvl="1"/><a:r><a:t>deep</a:t></a:r><a:br/><a:r><a:t>er</a:t></a:r></a:p></p:txBody></p:sp>`
	second := `<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>x</a:t></a:r></a:p></a:txBody></a:tc><a:tc><a:txBody><a:p/></a:txBody></a:tc></a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>`
	got, _ := readPages(t, documentstest.PPTX(first, second))
	wantSame(t, got, "slide 1\n# The title\n\nfirst\nsecond\n\n[image: A logo]\n\nin a group\n\n  - deep er\n\nNotes: Say it slowly.\f\nslide 2\n| x |  |\n|---|---|")
}

func TestProblemsAreNamed(t *testing.T) {
	if testrace.Elsewhere(t) {
		return
	}
	const bomb = `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>`
	for _, test := range []struct {
		name    string
		content []byte
		want    pages.Problem
	}{
		{"no archive", []byte("PK\x03\x04 nothing"), pages.Damaged},
		{"another archive", documentstest.Archive("a.txt", "x"), pages.Unknown},
		{"a document of another kind", documentstest.Archive("_rels/.rels", documentstest.Relations("r1", "officeDocument", "d.xml"), "d.xml", "<visio/>"), pages.Unknown},
		{"no XML", documentstest.Archive("word/document.xml", "no"), pages.Unknown},
		{"entities", documentstest.Archive("word/document.xml", bomb+`<document><body><p><r><t>&b;</t></r></p></body></document>`), pages.Damaged},
		{"a part that is too long", documentstest.DOCX(strings.Repeat("<w:p></w:p>"+strings.Repeat(" ", 1<<20), 66)), pages.TooMuch},
		{"depth", documentstest.DOCX(strings.Repeat("<w:sdt>", 100_000)), pages.TooMuch},
		{"depth in a run", documentstest.DOCX("<w:p>" + strings.Repeat("<w:r>", 1000) + "</w:p>"), pages.TooMuch},
		{"cut off", documentstest.DOCX("<w:p><w:r>"), pages.Damaged},
	} {
		_, err := office.Open(test.content)
		problem, ok := errors.AsType[*pages.Error](err)
		if !ok || problem.Problem != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// The readable part of a damaged document is shown, with a note that there was more.
func TestDamagedDocumentsAreShownInPart(t *testing.T) {
	got, note := readPages(t, documentstest.DOCX(paragraphXML("", "whole")+"<w:p><w:r></w:p>"))
	wantSame(t, got, "whole")
	wantSame(t, note, "the file is damaged: what is behind this is missing")
}

func TestLimits(t *testing.T) {
	if testrace.Elsewhere(t) {
		return
	}
	line := paragraphXML("", strings.Repeat("x", 1<<20))
	d, err := office.Open(documentstest.DOCX(strings.Repeat(line, 40)))
	if err != nil {
		t.Fatal(err)
	}
	if d.Note() != "only the first 32 MB of its text were read" {
		t.Errorf("it notes %q", d.Note())
	}
}

// FuzzParts reads random parts.
func FuzzParts(f *testing.F) {
	f.Add(0, `<document><body><p><pPr><pStyle val="H"/><numPr><numId val="1"/></numPr></pPr><r><t>x</t></r></p><tbl><tr><tc><p/></tc></tr></tbl></body></document>`, `<styles><style styleId="H"><name val="heading 1"/><basedOn val="H"/></style></styles>`, wordLists)
	f.Add(1, `<worksheet><sheetData><row r="9"><c r="ZZ1" s="1"><v>1e9</v></c></row></sheetData></worksheet>`, `<styleSheet><numFmts><numFmt numFmtId="1" formatCode="[h"/></numFmts><cellXfs><xf numFmtId="1"/><xf numFmtId="22"/></cellXfs></styleSheet>`, `<sst><si><t>x</t></si></sst>`)
	f.Add(2, `<sld show="0"><sp><ph type="title"/><txBody><p><pPr lvl="9"/><r><t>x</t></r></p></txBody></sp><tbl><tr><tc/></tr></tbl></sld>`, `<data><pt><p><t>x</t></p></pt></data>`, `<notes/>`)
	f.Fuzz(func(t *testing.T, kind int, first, second, third string) {
		var content []byte
		switch kind % 3 {
		case 0:
			content = documentstest.Archive("word/document.xml", first, "word/styles.xml", second, "word/numbering.xml", third)
		case 1:
			content = documentstest.Archive("xl/workbook.xml", `<workbook xmlns:r="`+documentstest.Related+`"><sheet name="s" r:id="r1"/></workbook>`,
				"xl/_rels/workbook.xml.rels", documentstest.Relations("r1", "worksheet", "s.xml", "r2", "styles", "t.xml", "r3", "sharedStrings", "u.xml"),
				"xl/s.xml", first, "xl/t.xml", second, "xl/u.xml", third)
		default:
			content = documentstest.Archive("ppt/presentation.xml", `<presentation xmlns:r="`+documentstest.Related+`"><sldId r:id="r1"/></presentation>`,
				"ppt/_rels/presentation.xml.rels", documentstest.Relations("r1", "slide", "s.xml"), "ppt/s.xml", first,
				"ppt/_rels/s.xml.rels", documentstest.Relations("r1", "diagramData", "t.xml", "r2", "notesSlide", "u.xml"), "ppt/t.xml", second, "ppt/u.xml", third)
		}
		d, err := office.Open(content)
		if err != nil {
			if _, ok := errors.AsType[*pages.Error](err); !ok {
				t.Fatalf("the error is none for a model: %v", err)
			}
			return
		}
		for n := 1; n <= d.Count(); n++ {
			page, err := d.Page(n)
			if err != nil || !utf8.ValidString(page.Text) || len(page.Text) > 4<<20 {
				t.Fatalf("page %d has %d bytes, %v", n, len(page.Text), err)
			}
		}
	})
}
