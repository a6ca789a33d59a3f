import unittest

from calculator import mean


class Mean(unittest.TestCase):
    def test_of_three(self):
        self.assertEqual(mean([1, 2, 3]), 2)


if __name__ == "__main__":
    unittest.main()
