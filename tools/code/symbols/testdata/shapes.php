<html>
function outside() { }
<?php
declare(strict_types=1);

namespace App\Shapes;

use App\Base;
use function App\helper;

// class Commented {}
# function commented() {}
const MAX_SIDES = 12;
define('APP_NAME', 'shapes');

#[Attribute(flags: 1)]
abstract class Shape extends Base implements Countable, \Stringable
{
    use Loggable { log as protected write; }

    public const SIDES = 0;
    private static ?Shape $instance = null;
    protected array $items = ['class Hidden {', "function quoted() {"];

    public function __construct(private readonly string $name, int ...$sizes)
    {
        parent::__construct();
    }

    abstract public function area(): float;

    final public static function make(string $kind): static
    {
        $f = function (int $x) use ($kind): int { return $x; };
        $g = fn($x) => $x * 2;
        return new class($kind) extends Shape {
            public function unnamed() {}
        };
    }

    public function &reference(): array { return $this->items; }

    private function text(): string
    {
        return <<<HTML
            function heredoc() {
            class Inside {}
            HTML;
    }
}

interface Visitor
{
    public function visit(Shape $shape): void;
}

trait Loggable
{
    protected function log(string $m): void { echo "}"; }
}

function draw(Shape $shape): void
{
    if ($shape) {
        foreach ([1, 2] as $x) { echo $x; }
    }
    ?>
    <p>function html() { }</p>
    <?php
}

if (!function_exists('helper')) {
    function helper(): void {}
}

final class Circle extends Shape
{
    public function area(): float { return M_PI; }
}
?>
function trailing() { }
