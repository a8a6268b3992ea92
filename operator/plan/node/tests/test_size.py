"""The document through which the operator asks has a hard limit, and one parameter."""
import unittest

from . import render

DOCUMENT_LIMIT = 65536


class Size(unittest.TestCase):
    def test_the_document_fits_and_holds_one_parameter_only(self):
        text = render.document()
        self.assertLessEqual(len(text), DOCUMENT_LIMIT // 2)
        self.assertEqual(text.count("{{"), 1)
        self.assertIn("HPCOPS_PAYLOAD='{{ payload }}'\n", text)

    def test_no_line_of_a_script_ends_its_here_document(self):
        for name, end in (("job.sh", "HPCOPS_BATCH_END"), ("job.py", "HPCOPS_JOB_END")):
            self.assertNotIn(end, render.read(name))


if __name__ == "__main__":
    unittest.main()
