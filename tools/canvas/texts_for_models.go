package canvas

// What models read.
const (
	description = "Show people a table, a plot or an HTML page with your answer. Give exactly one of table, plot and html. " +
		"The web page shows it in a frame; other chats get a picture or a file. Say in your answer what it shows, and don't write its path. " +
		"People get what every call has drawn, so a better version doesn't replace an earlier one."

	noteShown     = "people get it with your answer, so don't send it yourself"
	noteStill     = "; Parley has removed scripts and links, because you have read text that strangers may have written"
	noteNoPicture = "; chats get the HTML file, because Parley couldn't make a picture: "

	whyMissing   = "the browser isn't installed"
	whyNoProgram = "the browser isn't a program"
	whyNotHeld   = "another process may have taken over the conversation"

	errOne        = "give exactly one of html, table and plot"
	errTitle      = "title has %d bytes, and the limit is %d"
	errHeight     = "height is %d: give %d to %d pixels, or leave it out"
	errHTML       = "html has %d bytes, and the limit is %d: leave something out, or use smaller pictures"
	errLarge      = "the document would have %d bytes, and the limit is %d: leave something out"
	errUnreadable = "Parley can't read html: %v"
	errRoots      = "it has more than %d html and body tags, or more than %d attributes in them"
	errColumns    = "the table has %d columns: give 1 to %d"
	errRows       = "the table has %d rows: give 1 to %d, such as the most important ones"
	errRow        = "row %d has %d cells, but there are %d columns"
	errCells      = "the table has %d cells, and the limit is %d: leave out rows or columns"
	errCell       = "a cell of row %d has %d bytes, and the limit is %d"
	errKind       = "kind is %q: give line, bar or scatter"
	errSeries     = "the plot has %d series: give 1 to %d, and combine the rest"
	errPoints     = "the plot has %d values of x: give 1 to %d, such as averages"
	errValues     = "the series %q has %d values, but there are %d of x: give one for each"
	errLabel      = "a name or a value of x has %d bytes, and the limit is %d"
	errNumber     = "%g is too large to plot: use larger units"
	errScatter    = "x has %q: a scatter plot needs numbers"
)
