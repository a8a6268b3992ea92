"""The count that CI shows is right for every kind of log, a stage that fails without a failed test included."""
import unittest

from count import count


class Count(unittest.TestCase):
    def test_logs(self):
        rust = "test result: ok. 3 passed; 0 failed; 0 ignored\nx\ntest result: FAILED. 4 passed; 2 failed; 0 ignored\n"
        for text, code, expected in [
            ("", 0, (1, 0)),
            ("error: no", 1, (0, 1)),
            (rust, 101, (7, 2)),
            ("test result: ok. 3 passed; 0 failed;\nerror: could not compile", 101, (3, 1)),
            ("Ran 5 tests in 0.1s\n\nOK\n", 0, (5, 0)),
            ("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=2)\n", 1, (2, 3)),
            ("Ran 5 tests in 0.1s\n\nFAILED (errors=2)\n", 1, (3, 2)),
        ]:
            self.assertEqual(count(text, code), expected, text)


if __name__ == "__main__":
    unittest.main()
