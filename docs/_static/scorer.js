/* Order of search results: pages for users before measurements, internals and the list of commands. */
var Scorer = {
  score: function (result) {
    return /^(internals|measured)\/|^(reference\/commands|security|model)$/.test(result[0]) ? result[4] - 4 : result[4];
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
