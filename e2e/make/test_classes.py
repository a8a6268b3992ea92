"""A named story counts only if this run says that it has passed."""
import unittest

from classes import unpassed

PAGE = "| 1 | x | `e2e/tests/stories/life.rs::a`, `e2e/tests/stories/elastic.rs::b`, `operator/src/memory.rs::c` |"


class Classes(unittest.TestCase):
    def test_only_a_line_that_says_ok_counts(self):
        ran = "1.0\tok\tstories::life::a\n2.0\tFAILED\tstories::elastic::b\n"
        self.assertEqual(unpassed(PAGE, ran), ["elastic::b"])
        self.assertEqual(unpassed(PAGE, ""), ["elastic::b", "life::a"])
        self.assertEqual(unpassed(PAGE, ran.replace("FAILED", "ok")), [])


if __name__ == "__main__":
    unittest.main()
